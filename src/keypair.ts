import { readFileSync } from "node:fs";
import { getBase58Encoder } from "@solana/codecs-strings";
import { Keypair } from "@solana/web3.js";
import { z } from "zod";
import { codeOf } from "./observability/thrown.ts";

const EXPECTED =
  "expected the path of a keypair file, its JSON array of 64 bytes, or the secret key in base58";

const SECRET_KEY_BYTES = 64;
const PUBLIC_KEY_BYTES = 32;
const SecretKey = z.array(z.int().min(0).max(255)).length(SECRET_KEY_BYTES);

/**
 * Reads a keypair from `text`: a JSON array of 64 bytes, as `solana-keygen` writes it; the same
 * bytes in base58; or the path of a file that contains either. Errors never quote a key: they quote
 * `text` only if it looks like a path.
 */
export function readKeypair(text: string): Keypair {
  const problem = describeMistake(text);
  if (problem !== undefined) throw new Error(`${EXPECTED}; ${problem}`);
  const bytes = decodeSecretKey(text) ?? decodeSecretKey(readKeyFile(text));
  if (!bytes) throw new Error(`${EXPECTED}; the file contains no such key`);
  try {
    return Keypair.fromSecretKey(bytes);
  } catch {
    throw new Error(`${EXPECTED}; this key's public half does not match its secret half`);
  }
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = codeOf(error) ?? "unknown";
    // Quote only a text with a dot and a slash, as most paths have: a key in base64 has no dot.
    const triedPath = path.includes(".") && path.includes("/") ? ` ${path}` : "";
    const hint = path.startsWith("~") ? "; ~ is not expanded, so write the whole path" : "";
    throw new Error(
      `${EXPECTED}; the value is not a key, and cannot be read as a file${triedPath} (${code})${hint}`,
    );
  }
}

/**
 * Returns what is wrong with a value that looks like a key; undefined for a possible key or path.
 */
function describeMistake(text: string): string | undefined {
  const bytes = decodeBytes(text.trim());
  if (!bytes || bytes.length === SECRET_KEY_BYTES) return undefined;
  if (text.trim().startsWith("[")) return `the array has ${bytes.length} numbers`;
  return bytes.length === PUBLIC_KEY_BYTES ? "the value is a public key" : undefined;
}

function decodeSecretKey(text: string): Uint8Array | undefined {
  const { data } = SecretKey.safeParse(decodeBytes(text.trim()));
  return data && Uint8Array.from(data);
}

/** Returns the members of a JSON array, or the bytes of base58; undefined for other text. */
function decodeBytes(text: string): unknown[] | undefined {
  try {
    const bytes: unknown = text.startsWith("[")
      ? JSON.parse(text)
      : [...getBase58Encoder().encode(text)];
    return Array.isArray(bytes) ? bytes : undefined;
  } catch {
    return undefined;
  }
}
