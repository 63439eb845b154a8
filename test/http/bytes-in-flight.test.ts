import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { createBytesInFlight } from "../../src/http/bytes-in-flight.ts";

const start = () => {
  const { add } = createBytesInFlight({
    ...{ maxBytes: 100, maxBytesPerAddress: 40 },
    readTimeout: 60_000,
  });
  const cut: string[] = [];
  return {
    cut,
    /** Returns a function that ends the entry. */
    add(address: string, bytes: number, name: string) {
      const message = new EventEmitter();
      add(address, bytes, message, () => void cut.push(name));
      return () => message.emit("close");
    },
  };
};

it("entries within the limits stay", () => {
  const { add, cut } = start();
  for (const address of ["a", "b"]) for (const i of [1, 2]) add(address, 20, `${address}${i}`);
  expect(cut).toEqual([]);
});

it("the oldest of an address are cut off for a new one of the same, and no others", () => {
  const { add, cut } = start();
  add("b", 40, "b1");
  for (const i of [1, 2, 3]) add("a", 20, `a${i}`);
  add("a", 40, "a4");
  expect(cut.toSorted()).toEqual(["a1", "a2", "a3"]);
});

it("the oldest of all are cut off for a new one when the whole is full", () => {
  const { add, cut } = start();
  for (const address of ["a", "b", "c", "d"]) add(address, 30, address);
  expect(cut).toEqual(["a"]);
});

it("one that alone exceeds a limit is alone", () => {
  const { add, cut } = start();
  add("a", 20, "a1");
  add("b", 20, "b1");
  add("a", 200, "a2");
  expect(cut.toSorted()).toEqual(["a1", "b1"]);
  add("b", 20, "b2");
  expect(cut.toSorted()).toEqual(["a1", "a2", "b1"]);
});

it("an entry that has ended takes nothing, however often its end is told", () => {
  const { add, cut } = start();
  const end = add("a", 40, "a1");
  end();
  end();
  add("a", 40, "a2");
  expect(cut).toEqual([]);
});
