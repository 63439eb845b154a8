import { readFileSync } from "node:fs";
import { getBase58Encoder } from "@solana/codecs-strings";
import { Keypair } from "@solana/web3.js";
import { z } from "zod";

const EXPECTED =
  "expected the path of a keypair file, its JSON array of 64 bytes, or the secret key in base58";

const SecretKey = z.array(z.int().min(0).max(255)).length(64);

/**
 * Reads a keypair from the path of a file as `solana-keygen` writes it, or from the file's content: a JSON
 * array of 64 bytes, or the same bytes in base58.
 *
 * @throws {Error} with a message that never quotes `text` or the file.
 */
export function readKeypair(text: string): Keypair {
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
    const code = (error as NodeJS.ErrnoException).code ?? "unknown";
    throw new Error(`${EXPECTED}; the value is not a key, and cannot be read as a file (${code})`);
  }
}

function decodeSecretKey(text: string): Uint8Array | undefined {
  const key = text.trim();
  try {
    const bytes: unknown = key.startsWith("[") ? JSON.parse(key) : [...getBase58Encoder().encode(key)];
    return Uint8Array.from(SecretKey.parse(bytes));
  } catch {
    return undefined;
  }
}
