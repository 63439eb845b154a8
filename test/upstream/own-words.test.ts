import { describe, expect, it } from "vitest";
import { ownWordsOf, secretsIn } from "../../src/upstream/own-words.ts";

const quote = (text: string) => `"${text}"`;

describe("what an upstream says about a failure", () => {
  it.each([
    [
      { error: { code: -32005, message: "daily request count exceeded" } },
      "daily request count exceeded",
    ],
    [{ message: "no API key found" }, "no API key found"],
    [{ error: "project paused" }, "project paused"],
    [{ title: "Forbidden", detail: "enroll the app" }, "enroll the app"],
    ["a JSON text", "a JSON text"],
  ])("is the message of its JSON: %j", (body, words) => {
    expect(ownWordsOf(JSON.stringify(body), [])).toBe(quote(words));
  });

  it.each(["", "{}", "[]", "null", "503", '{"error":{}}', "<html></html>"])(
    "is empty without any: %s",
    (body) => {
      expect(ownWordsOf(body, [])).toBe("");
    },
  );

  it("is one line without markup and control characters, and is cut", () => {
    expect(ownWordsOf("<style>b {}</style><h1>No\u001b[31m</h1>\r\n<p>way</p>", [])).toBe(
      '"No [31m way"',
    );
    expect(ownWordsOf("too long ".repeat(100), [])).toHaveLength(123);
  });

  it("has neither parts of the URL nor long words", () => {
    const secrets = secretsIn(new URL("https://rpc.example/v2/shortkey?token=a%20secret"));
    const text = "shortkey: a secret at /v2/ for 5Q544fKrFoe6tsEbD7S8EmxGTJYAKtTVhAW5Q5pge4j1";
    expect(ownWordsOf(text, secrets)).toBe('"…: … at /v2/ for …"');
  });
});
