import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { catalogueOf } from "./open.ts";
import { readConfig } from "../../service/config.ts";
import { createCommandLine } from "../../testing/command-line.ts";
import { isEnabled, zoneOf } from "./blocklist.ts";

const { dataDir, run } = createCommandLine();
const KEY = "k3y-that-is-secret";

const configOf = (settings: Readonly<Record<string, string>>) => {
  const config = readConfig(settings);
  if (!config.ok) throw new Error(config.error.join("\n"));
  return config.value;
};

let files = 0;
const fileWith = (text: string): string => {
  mkdirSync(dataDir, { recursive: true });
  const path = join(dataDir, "..", `catalogue-${++files}.json`);
  writeFileSync(path, text);
  return path;
};

const embedded = () => JSON.parse(readFileSync(new URL("../../../fixtures/blocklists.json", import.meta.url), "utf8"));

describe("the catalogue of blocklists", () => {
  test("is the embedded one without settings", () => {
    expect(catalogueOf(configOf({})).version).toBe(embedded().version);
  });

  test("is the operator's own where there is one, with the keys given", () => {
    const json = embedded();
    const path = fileWith(JSON.stringify({ ...json, version: "own", lists: json.lists.slice(0, 1) }));
    const settings = { POSTWARDEN_BLOCKLIST_CATALOGUE: path, POSTWARDEN_BLOCKLIST_KEYS: `spamhaus-zen=${KEY}` };
    const { version, lists } = catalogueOf(configOf(settings));
    expect([version, lists.map(({ id }) => id)]).toEqual(["own", ["spamhaus-zen"]]);
    expect(lists.filter(isEnabled).map(zoneOf)).toEqual([`${KEY}.zen.dq.spamhaus.net`]);
  });
});

describe("settings about blocklists that do not fit", () => {
  const commands = [["serve"], ["verify", "a@nowhere.invalid"]];
  // The keys of a first start would be printed before its lists are loaded.
  beforeAll(async () => void (await run(["accounts", "create", "anna"])));
  const expectRefused = async (settings: Record<string, string>, sentences: readonly unknown[]) => {
    for (const args of commands) {
      const { status, out, err, problem } = await run(args, {
        settings: { DNS_SERVERS: "127.0.0.1:9", PORT: "0", ...settings },
      });
      expect({ status, out }).toEqual({ status: 1, out: "" });
      expect(problem.split("\n")).toEqual(["postwarden: Invalid settings:", ...sentences] as string[]);
      expect(err).not.toContain(KEY);
    }
  };
  const about = (name: string, text: string | RegExp) =>
    expect.stringMatching(
      new RegExp(`^  POSTWARDEN_${name}: .*${typeof text === "string" ? RegExp.escape(text) : text.source}.*\\.$`),
    );

  test("a catalogue that is not there", async () => {
    const path = join(dataDir, "..", "none.json");
    await expectRefused({ BLOCKLIST_CATALOGUE: path }, [
      about("BLOCKLIST_CATALOGUE", `${path} cannot be read: ENOENT`),
    ]);
  });

  test("a catalogue that is no JSON", async () => {
    const path = fileWith("zones:\n  - zen");
    await expectRefused({ BLOCKLIST_CATALOGUE: path }, [about("BLOCKLIST_CATALOGUE", `${path} cannot be read: JSON`)]);
  });

  test("a catalogue of another shape", async () => {
    const path = fileWith("{}");
    const sentences = ["version", "lists", "excluded"].map((field) => about("BLOCKLIST_CATALOGUE", field));
    await expectRefused({ BLOCKLIST_CATALOGUE: path }, sentences);
  });

  test("a catalogue that contradicts itself", async () => {
    const json = embedded();
    const [first] = json.lists;
    const path = fileWith(JSON.stringify({ ...json, lists: [first, first] }));
    const { status, err } = await run(["verify", "a@nowhere.invalid"], { settings: { BLOCKLIST_CATALOGUE: path } });
    expect(status).toBe(1);
    expect(err).toContain('POSTWARDEN_BLOCKLIST_CATALOGUE: List "spamhaus-zen" is in the catalogue twice.');
  });

  test("a key for a list that is none, that takes none, or that is no key", async () => {
    await expectRefused({ BLOCKLIST_KEYS: `nonesuch=${KEY},spamcop=${KEY},spamhaus-zen=${KEY}!` }, [
      about("BLOCKLIST_KEYS", '"nonesuch", which is not in the catalogue'),
      about("BLOCKLIST_KEYS", '"spamcop", which uses none'),
      about("BLOCKLIST_KEYS", '"spamhaus-zen" must be 1 to 63 letters'),
    ]);
  });

  test("a key without a list", async () => {
    await expectRefused({ BLOCKLIST_KEYS: KEY }, [about("BLOCKLIST_KEYS", "Entry 1 does not have the form list=key")]);
  });

  test("a signal that is neither on nor off", async () => {
    await expectRefused({ DNSBL_SIGNAL: "yes" }, [about("DNSBL_SIGNAL", "is not one of on, off")]);
  });
});

test("the settings in force name the lists with keys, not the keys", async () => {
  const settings = { BLOCKLIST_KEYS: `spamhaus-zen=${KEY}`, DNSBL_SIGNAL: "off" };
  const { json, out } = await run(["config", "--json"], { settings });
  expect(json).toMatchObject({ POSTWARDEN_BLOCKLIST_KEYS: ["spamhaus-zen"], POSTWARDEN_DNSBL_SIGNAL: "off" });
  expect(out).not.toContain(KEY);
});
