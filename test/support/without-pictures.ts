/** An answer without the pictures' URLs, which only the sandbox's examples have. */
export const withoutPictures = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (name, value: unknown) => (name === "pictureUrl" ? undefined : value)),
  );
