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

const FIELDS = z.object({ name, verified, followers, pictureUrl });

/** The public profile of an account. A field is null if the network gives no usable value. */
export type Profile = Readonly<z.infer<typeof FIELDS>>;

/** All fields are null. */
export const NO_PROFILE: Profile = FIELDS.parse({});

/**
 * A user's profile in a response. Never fails, because lookups do not need it: a field of the wrong
 * type is null.
 */
export const PROFILE = z
  .object({
    name,
    verified,
    public_metrics: z.object({ followers_count: followers }).catch({ followers_count: null }),
    profile_image_url: pictureUrl,
  })
  .transform(({ public_metrics, profile_image_url, ...same }): Profile => {
    return { ...same, followers: public_metrics.followers_count, pictureUrl: profile_image_url };
  });

/**
 * A profile in a cache entry in Redis. Entries of earlier versions have none: then all fields are
 * null.
 */
export const CACHED_PROFILE = FIELDS.catch(NO_PROFILE);
