import manifest from "../../package.json" with { type: "json" };

/** The service's version, as in package.json. */
export const VERSION = manifest.version;
