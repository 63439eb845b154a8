import { z } from "zod";

/** The user fields that a profile needs: the value of the network's parameter `user.fields`. */
export const PROFILE_FIELDS = "name,verified,public_metrics,profile_image_url";

/** Longer values are ignored. The network's names have at most 50 characters. */
const MAX_NAME_LENGTH = 200;
const MAX_URL_LENGTH = 2_000;
/** The largest `Int` of GraphQL. */
const MAX_FOLLOWERS = 2 ** 31 - 1;

const name = z.string().max(MAX_NAME_LENGTH).nullable().catch(null);
/** Whether the network has verified the account. */
const verified = z.boolean().nullable().catch(null);
const followers = z.int().nonnegative().max(MAX_FOLLOWERS).nullable().catch(null);
/** Pages show the picture, so its URL must be https, without credentials, or the sandbox's. */
const pictureUrl = z
  .string()
  .max(MAX_URL_LENGTH)
  .refine((text) => {
    const url = URL.parse(text);
    const isSandbox = url?.protocol === "http:" && url.hostname === "127.0.0.1";
    return (url?.protocol === "https:" || isSandbox) && url.username === "" && url.password === "";
  })
  .transform((text) => new URL(text).href)
  .nullable()
  .catch(null);

/** Never fails, because lookups do not need a profile: an unusable field is null. */
export const PROFILE = z.object({ name, verified, followers, pictureUrl });

/** The public profile of an account. A field is null if the network gives no usable value. */
export type Profile = Readonly<z.infer<typeof PROFILE>>;
