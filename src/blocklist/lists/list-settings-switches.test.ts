import { expect, test } from "bun:test";
import { isEnabled, applySwitches } from "./blocklist.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";

const catalogue = readEmbeddedCatalogue();
const enabledIn = (switches: { enable?: readonly string[]; disable?: readonly string[] }): readonly string[] => {
  const applied = applySwitches(catalogue, { enable: [], disable: [], ...switches });
  if (!applied.ok) throw new Error(JSON.stringify(applied.error));
  return applied.value.lists.filter(isEnabled).map(({ id }) => id);
};

test("lists are enabled and disabled by the settings; the others stay as in the catalogue", () => {
  const usual = catalogue.lists.filter(isEnabled).map(({ id }) => id);
  expect(enabledIn({})).toEqual(usual);
  expect(enabledIn({ disable: ["spamcop"] })).toEqual(usual.filter((id) => id !== "spamcop"));
  expect(new Set(enabledIn({ enable: ["kempt"] }))).toEqual(new Set([...usual, "kempt"]));
});

test("a list with a key can be disabled", () => {
  const keyed = {
    ...catalogue,
    lists: catalogue.lists.map((list) => ({ ...list, key: list.id === "spamhaus-zrd" ? "k" : null })),
  };
  expect(keyed.lists.filter(isEnabled).map(({ id }) => id)).toContain("spamhaus-zrd");
  const applied = applySwitches(keyed, { enable: [], disable: ["spamhaus-zrd"] });
  expect(applied.ok && applied.value.lists.filter(isEnabled).map(({ id }) => id)).not.toContain("spamhaus-zrd");
});

test.each([
  [
    { enable: ["spamcpo"], disable: [] },
    { enable: ['"spamcpo" is not in the catalogue. Did you mean "spamcop"?'], disable: [] },
  ],
  [
    { enable: [], disable: ["zzzzzzzzzzzz"] },
    { enable: [], disable: [expect.stringContaining("blocklist lists")] },
  ],
  [
    { enable: ["psbl"], disable: ["psbl"] },
    { enable: [], disable: [expect.stringContaining("as well")] },
  ],
  [
    { enable: ["spamhaus-zrd"], disable: [] },
    { enable: [expect.stringContaining("needs a key")], disable: [] },
  ],
])("%j is refused", (switches, problems) => {
  expect(applySwitches(catalogue, switches)).toEqual({ ok: false, error: problems });
});
