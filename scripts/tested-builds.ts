import type { ProgramName } from "../src/chain/launchpad/program-ids.ts";

/** A program's file: its size, and its SHA-256 in hex. */
interface Build {
  readonly bytes: number;
  readonly sha256: string;
}

/** The SHA-256 of a crate's archive, and the programs in it. */
interface CrateBuilds {
  readonly crate: string;
  readonly programs: Readonly<Record<ProgramName, Build>>;
}

/** The crate in which the launch platform ships its programs. */
export const PLATFORM_CRATE = "pump-rust-client";

/** The builds on which the service was tested, by the version of {@link PLATFORM_CRATE}. */
export const TESTED_BUILDS: Readonly<Record<string, CrateBuilds>> = {
  "0.3.0": {
    crate: "711db8d7e9af7e2d0d66e12b306d21dad5e84a00235a9a3be81aa9d4eb1e6486",
    programs: {
      LAUNCHPAD: {
        bytes: 1_885_880,
        sha256: "defc661c59c032c2f04ac54d3859ca5e2f81f1776c75746ded4cff461dca542e",
      },
      AMM: {
        bytes: 1_232_672,
        sha256: "e90f9578de8a4d55aeb58e33cde5aef300094eef4a4971533f792f465124fc32",
      },
      FEES: {
        bytes: 853_528,
        sha256: "2307575fbb3fb170d319aa25e33ed49f25d3218e5dfb7589863958c0d4eb5dfe",
      },
    },
  },
  "0.4.1": {
    crate: "7179a636f9c52b2447a39b13216b9832141a8557c958f27e66b78582b9efbe19",
    programs: {
      LAUNCHPAD: {
        bytes: 1_899_448,
        sha256: "692b19d0242b906d73764c41d30f7b61816c1c6f30a0164e09a20adf9578c092",
      },
      AMM: {
        bytes: 1_233_464,
        sha256: "3c83d286afda2ac79b9c7284b6cbc931757342a48bd0be22db94e37b409ebee4",
      },
      FEES: {
        bytes: 853_528,
        sha256: "2307575fbb3fb170d319aa25e33ed49f25d3218e5dfb7589863958c0d4eb5dfe",
      },
    },
  },
  "0.5.0": {
    crate: "95693f12f465bbd223056a750794aa9fb88b19268ef288fe19ca0be0b903a8a7",
    programs: {
      LAUNCHPAD: {
        bytes: 1_934_800,
        sha256: "aa7b9ec411e08bdcf6941a986075ebceaac9087d1f859f263f766349fdaaabc3",
      },
      AMM: {
        bytes: 1_268_504,
        sha256: "0f7963aa07aadab8a2846382d92ccde87669a7efd81223c9639933c07eccd054",
      },
      FEES: {
        bytes: 873_256,
        sha256: "5b6ceda57863f0dcc3e0e3623052f8342c2c81883379699e71d7ed5383cb3dcf",
      },
    },
  },
};
