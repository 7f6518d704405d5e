import { describe, expect, test } from "bun:test";
import { isEnabled, zoneOf, applyKeys, maskKey, parseListKeys } from "./blocklist.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";

const SECRET = "s3cretKEY";
const catalogue = readEmbeddedCatalogue();
const withKeys = (keys: ReadonlyMap<string, string>) => {
  const applied = applyKeys(catalogue, keys);
  if (!applied.ok) throw new Error(applied.error.join(" "));
  return (id: string) => {
    const list = applied.value.lists.find((candidate) => candidate.id === id);
    if (!list) throw new Error(`no list ${id}`);
    return list;
  };
};

describe("the setting of keys", () => {
  test("reads pairs, white space around them left out", () => {
    const parsed = parseListKeys(" spamhaus-zen=abc , spamhaus-dbl = def,");
    expect(parsed.ok && [...parsed.value]).toEqual([
      ["spamhaus-zen", "abc"],
      ["spamhaus-dbl", "def"],
    ]);
  });

  test.each([
    [SECRET, "Entry 1 does not have the form list=key."],
    [`spamcop=a,=${SECRET}`, "Entry 2 does not have the form list=key."],
    [`spamhaus-zen=a,spamhaus-zen=${SECRET}`, 'The list "spamhaus-zen" has two keys.'],
  ])("refuses %p without repeating a key", (text, sentence) => {
    const parsed = parseListKeys(text);
    expect(parsed.ok ? [] : parsed.error).toEqual([sentence]);
  });

  test.each([
    ["nobody", SECRET, 'There is a key for "nobody", which is not in the catalogue.'],
    ["spamcop", SECRET, 'There is a key for the list "spamcop", which uses none.'],
    ["spamhaus-zen", `${SECRET}.x`, 'The key for the list "spamhaus-zen" must be 1 to 63 letters, digits and hyphens.'],
    ["spamhaus-zen", "", 'The key for the list "spamhaus-zen" must be 1 to 63 letters, digits and hyphens.'],
  ])("refuses a key for %s with a sentence that does not contain it", (id, key, sentence) => {
    const applied = applyKeys(catalogue, new Map([[id, key]]));
    expect(applied.ok ? [] : applied.error).toEqual([sentence]);
  });
});

describe("a key", () => {
  test("moves a list to its keyed zone, and leaves the others where they are", () => {
    const find = withKeys(new Map([["spamhaus-zen", SECRET]]));
    expect(zoneOf(find("spamhaus-zen"))).toBe("s3cretkey.zen.dq.spamhaus.net");
    expect(zoneOf(find("spamhaus-dbl"))).toBe("dbl.spamhaus.org");
  });

  test("enables a list that requires one", () => {
    const before = withKeys(new Map())("spamhaus-authbl");
    const after = withKeys(new Map([["spamhaus-authbl", SECRET]]))("spamhaus-authbl");
    expect([zoneOf(before), isEnabled(before), isEnabled(after)]).toEqual([null, false, true]);
  });

  test("is masked in every text, in any case, at every occurrence", () => {
    const list = withKeys(new Map([["spamhaus-zen", SECRET]]))("spamhaus-zen");
    expect(maskKey(list, `2.0.0.127.${SECRET}.zen.dq.spamhaus.net, ${SECRET.toUpperCase()}`)).toBe(
      "2.0.0.127.{key}.zen.dq.spamhaus.net, {key}",
    );
    expect(maskKey({ key: null }, "2.0.0.127.bl.spamcop.net")).toBe("2.0.0.127.bl.spamcop.net");
  });
});
