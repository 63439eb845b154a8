import manifest from "../../package.json" with { type: "json" };

export const VERSION = manifest.version;

/** The running commit, which the build of the image adds to package.json, or `unknown`. */
export const COMMIT: string = (manifest as { gitHead?: string }).gitHead || "unknown";
