import type { Profile } from "../social/profile.ts";
import { builder } from "./builder.ts";

export const ProfileType = builder.objectRef<Profile>("Profile").implement({
  description:
    "What the social network shows of an account, so that a person can recognize it. A field is null if the network does not give it.",
  fields: (t) => ({
    name: t.exposeString("name", {
      nullable: true,
      description: "The display name. Its owner chooses it, and anyone can choose the same.",
    }),
    verified: t.exposeBoolean("verified", {
      nullable: true,
      description: "Whether the network has verified the account.",
    }),
    followers: t.exposeInt("followers", {
      nullable: true,
      description: "How many accounts follow it.",
    }),
    pictureUrl: t.exposeString("pictureUrl", {
      nullable: true,
      description: "The URL of its picture at the network: https, and http in the sandbox.",
    }),
  }),
});
