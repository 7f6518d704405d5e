import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { createZoneResolver, type ZoneFailure, type ZoneRecords } from "../../../testing/dns-zone.ts";
import { dmarcRecordsIn, type Published, readPublished, recordHost, splitStrings } from "./record.ts";

const HOST = "_dmarc.example.com";

describe("what stands at a name", () => {
  const rows: ReadonlyArray<readonly [string, ZoneRecords | ZoneFailure, Published]> = [
    ["texts", { TXT: ["a", "b"] }, { kind: "texts", texts: ["a", "b"] }],
    ["another type", { A: ["192.0.2.1"] }, { kind: "texts", texts: [] }],
    ["nothing", "nxdomain", { kind: "texts", texts: [] }],
    ["an alias of a text", { CNAME: "t.example.net" }, { kind: "alias", target: "t.example.net", texts: ["t"] }],
    ["an alias of nothing", { CNAME: "gone.example.net" }, { kind: "alias", target: "gone.example.net", texts: [] }],
    ["an alias of an alias", { CNAME: "hop.example.net" }, { kind: "alias", target: "hop.example.net", texts: ["t"] }],
    ["SERVFAIL", "servfail", { kind: "failure", outcome: "servfail" }],
    ["an empty answer that nothing confirms", "unconfirmed", { kind: "failure", outcome: "unconfirmed" }],
    ["no answer", "timeout", { kind: "failure", outcome: "timeout" }],
    ["REFUSED", { TXT: "refused" }, { kind: "failure", outcome: "refused" }],
    ["aliases in a circle", { CNAME: HOST }, { kind: "failure", outcome: "cname_loop" }],
    ["an alias of a failure", { CNAME: "lame.example.net" }, { kind: "failure", outcome: "servfail" }],
  ];
  test.each(rows)("%s", async (_, entry, published) => {
    const others = {
      "t.example.net": { TXT: ["t"] },
      "hop.example.net": { CNAME: "t.example.net" },
      "lame.example.net": { TXT: "servfail" },
    } as const;
    const resolver = createZoneResolver({ [HOST]: entry, ...others });
    expect(readPublished(await resolver.resolve(recordHost("example.com"), "TXT"))).toEqual(published);
  });
});

test("of several texts those that begin with v=DMARC1 are records", () => {
  const texts = ["v=spf1 -all", "v=DMARC1; p=none", "x", "V = DMARC1", "v=dmarc1; p=none", "p=none; v=DMARC1"];
  expect(dmarcRecordsIn(texts).map(({ text }) => text)).toEqual(["v=DMARC1; p=none", "V = DMARC1"]);
});

describe("the strings of a text", () => {
  test.each([
    ["", [0]],
    ["a".repeat(255), [255]],
    ["a".repeat(256), [255, 1]],
    ["a".repeat(511), [255, 255, 1]],
    [`${"a".repeat(254)}ü`, [254, 2]],
  ])("%#: are as few as possible", (text, sizes) => {
    expect(splitStrings(text).map((string) => new TextEncoder().encode(string).length)).toEqual(sizes);
  });

  test("make up the text again, and none is over 255 octets", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 700 }), (text) => {
        const strings = splitStrings(text);
        expect(strings.join("")).toBe(text);
        for (const string of strings) expect(new TextEncoder().encode(string).length).toBeLessThanOrEqual(255);
      }),
    );
  });
});
