/**
 * Builds the sandbox's programs, `src/sandbox/programs/*.c` → `*.so`, and those of the tests, with
 * Debian's clang and no Solana toolchain: clang compiles a relocatable BPF object, and this script
 * wraps its `.text` in the dynamic ELF that the SBF loader accepts (version 0: e_flags 0, syscalls
 * as dynamic relocations of undefined symbols). The section `.source`, which is not loaded, holds
 * the SHA-256 of `sbf.h` and the source, so that a test can detect an outdated `.so`.
 *
 *     apt-get install clang && node scripts/build-sandbox-program.ts
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const EM_BPF = 247;
const ET_DYN = 3;
const R_BPF_64_32 = 10;
const [SHT_PROGBITS, SHT_STRTAB, SHT_DYNAMIC, SHT_REL, SHT_DYNSYM] = [1, 3, 6, 9, 11];
const [PT_LOAD, PT_DYNAMIC] = [1, 2];
const [PF_X, PF_R] = [1, 4];
const [DT_NULL, DT_SYMTAB, DT_REL, DT_RELSZ, DT_RELENT] = [0, 6, 17, 18, 19];

interface Section {
  name: string;
  type: number;
  flags: number;
  data: Buffer;
  link?: number;
  entrySize?: number;
}

/** Reads the code, the entry point and the syscalls of a relocatable BPF object. */
function readObject(object: Buffer) {
  const sectionTable = Number(object.readBigUInt64LE(40));
  const sections = Array.from({ length: object.readUInt16LE(60) }, (_, i) => {
    const at = sectionTable + i * object.readUInt16LE(58);
    const offset = Number(object.readBigUInt64LE(at + 24));
    const size = Number(object.readBigUInt64LE(at + 32));
    return { name: object.readUInt32LE(at), link: object.readUInt32LE(at + 40), offset, size };
  });
  const text = (table: { offset: number }, at: number) =>
    object.toString("latin1", table.offset + at, object.indexOf(0, table.offset + at));
  const names = sections[object.readUInt16LE(62)]!;
  const find = (name: string) => sections.find((section) => text(names, section.name) === name);
  for (const section of sections) {
    const name = text(names, section.name);
    if (section.size > 0 && /^\.(rodata|data|bss)/.test(name))
      throw new Error(`the object has ${name}: globals and constant data are not allowed`);
  }

  const symtab = find(".symtab")!;
  const strings = sections[symtab.link]!;
  const symbols = Array.from({ length: symtab.size / 24 }, (_, i) => {
    const at = symtab.offset + i * 24;
    return {
      name: text(strings, object.readUInt32LE(at)),
      value: Number(object.readBigUInt64LE(at + 8)),
    };
  });
  const entry = symbols.find((symbol) => symbol.name === "entrypoint");
  if (!entry) throw new Error("the object has no entrypoint");

  const code = find(".text")!;
  const relocations = find(".rel.text");
  const calls = Array.from({ length: (relocations?.size ?? 0) / 16 }, (_, i) => {
    const at = relocations!.offset + i * 16;
    const info = object.readBigUInt64LE(at + 8);
    if (Number(info & 0xffffffffn) !== R_BPF_64_32)
      throw new Error(`relocation ${i} is not a syscall`);
    return {
      offset: Number(object.readBigUInt64LE(at)),
      syscall: symbols[Number(info >> 32n)]!.name,
    };
  });
  return { code: object.subarray(code.offset, code.offset + code.size), entry: entry.value, calls };
}

function words(values: (number | bigint)[]): Buffer {
  const buffer = Buffer.alloc(values.length * 8);
  values.forEach((value, i) => buffer.writeBigUInt64LE(BigInt(value), i * 8));
  return buffer;
}

/** Returns the loadable program. The loader requires virtual addresses to equal file offsets. */
function writeProgram(
  { code, entry, calls }: ReturnType<typeof readObject>,
  sourceHash: string,
): Buffer {
  const syscalls = [...new Set(calls.map((call) => call.syscall))];
  const dynstr = Buffer.from(`\0${syscalls.map((name) => `${name}\0`).join("")}`, "latin1");
  const dynsym = Buffer.alloc(24 * (syscalls.length + 1));
  syscalls.forEach((name, i) => {
    dynsym.writeUInt32LE(dynstr.indexOf(`\0${name}\0`, 0, "latin1") + 1, 24 * (i + 1));
    dynsym.writeUInt8(0x10, 24 * (i + 1) + 4); // STB_GLOBAL, STT_NOTYPE, undefined
  });

  const sections: Section[] = [
    { name: ".text", type: SHT_PROGBITS, flags: 6, data: code },
    {
      name: ".dynamic",
      type: SHT_DYNAMIC,
      flags: 3,
      data: Buffer.alloc(16 * 5),
      link: 4,
      entrySize: 16,
    },
    { name: ".dynsym", type: SHT_DYNSYM, flags: 2, data: dynsym, link: 4, entrySize: 24 },
    { name: ".dynstr", type: SHT_STRTAB, flags: 2, data: dynstr },
    {
      name: ".rel.dyn",
      type: SHT_REL,
      flags: 2,
      data: Buffer.alloc(16 * calls.length),
      link: 3,
      entrySize: 16,
    },
    { name: ".source", type: SHT_PROGBITS, flags: 0, data: Buffer.from(sourceHash, "latin1") },
    { name: ".shstrtab", type: SHT_STRTAB, flags: 0, data: Buffer.alloc(0) },
  ];
  const shstrtab = Buffer.from(`\0${sections.map(({ name }) => `${name}\0`).join("")}`, "latin1");
  sections.at(-1)!.data = shstrtab;

  let offset = 64 + 56 * 3;
  const placed = sections.map((section) => {
    const at = (offset + 7) & ~7;
    offset = at + section.data.length;
    return { ...section, at };
  });
  const [text, dynamic, symbols, , rel] = placed as [
    (typeof placed)[0],
    (typeof placed)[0],
    (typeof placed)[0],
    (typeof placed)[0],
    (typeof placed)[0],
  ];
  calls.forEach((call, i) => {
    const symbol = BigInt(syscalls.indexOf(call.syscall) + 1);
    words([text.at + call.offset, (symbol << 32n) | BigInt(R_BPF_64_32)]).copy(rel.data, 16 * i);
  });
  words([
    DT_REL,
    rel.at,
    DT_RELSZ,
    rel.data.length,
    DT_RELENT,
    16,
    DT_SYMTAB,
    symbols.at,
    DT_NULL,
    0,
  ]).copy(dynamic.data);

  const sectionTable = (offset + 7) & ~7;
  const file = Buffer.alloc(sectionTable + 64 * (placed.length + 1));
  Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]).copy(file);
  file.writeUInt16LE(ET_DYN, 16);
  file.writeUInt16LE(EM_BPF, 18);
  file.writeUInt32LE(1, 20);
  words([text.at + entry, 64, sectionTable]).copy(file, 24);
  [64, 56, 3, 64, placed.length + 1, placed.length].forEach((value, i) =>
    file.writeUInt16LE(value, 52 + 2 * i),
  );

  const loadEnd = rel.at + rel.data.length;
  [
    { type: PT_LOAD, flags: PF_R | PF_X, at: text.at, size: code.length },
    { type: PT_LOAD, flags: PF_R, at: dynamic.at, size: loadEnd - dynamic.at },
    { type: PT_DYNAMIC, flags: PF_R, at: dynamic.at, size: dynamic.data.length },
  ].forEach(({ type, flags, at, size }, i) => {
    file.writeUInt32LE(type, 64 + 56 * i);
    file.writeUInt32LE(flags, 68 + 56 * i);
    words([at, at, at, size, size, 8]).copy(file, 72 + 56 * i);
  });

  placed.forEach(({ name, type, flags, data, at, link = 0, entrySize = 0 }, i) => {
    data.copy(file, at);
    const header = sectionTable + 64 * (i + 1);
    file.writeUInt32LE(shstrtab.indexOf(`\0${name}\0`, 0, "latin1") + 1, header);
    file.writeUInt32LE(type, header + 4);
    words([flags, flags & 2 ? at : 0, at, data.length]).copy(file, header + 8);
    file.writeUInt32LE(link, header + 40);
    words([8, entrySize]).copy(file, header + 48);
  });
  return file;
}

const folderOf = (path: string) => new URL(`../${path}/`, import.meta.url).pathname;
const programs = folderOf("src/sandbox/programs");
const header = readFileSync(join(programs, "sbf.h"));
const work = mkdtempSync(join(tmpdir(), "tributary-program-"));
const files = [programs, folderOf("test/support/programs")].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".c"))
    .map((file) => [folder, file] as const),
);
for (const [folder, file] of files) {
  const object = join(work, "program.o");
  const flags = [
    "-target",
    "bpfel",
    "-mcpu=v2",
    "-O2",
    "-fno-builtin",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-c",
  ];
  execFileSync("clang", [...flags, join(folder, file), "-o", object], { stdio: "inherit" });
  const hash = createHash("sha256")
    .update(header)
    .update(readFileSync(join(folder, file)))
    .digest("hex");
  const program = writeProgram(readObject(readFileSync(object)), hash);
  writeFileSync(join(folder, file.replace(/\.c$/, ".so")), program);
  console.log(`${file}: ${program.length} bytes`);
}
rmSync(work, { recursive: true });
