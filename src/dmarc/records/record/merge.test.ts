import { describe, expect, test } from "bun:test";
import type { InheritedRecord } from "./discovery.ts";
import { type MergeInput, mergeRua, type RuaMerge } from "./merge.ts";
import { dmarcRecordsIn, type Published } from "./record.ts";

const OURS = "k3y7@reports.example.net";
const URI = `mailto:${OURS}`;

const merge = (published: Published, given: Partial<MergeInput> = {}): RuaMerge => {
  const merged = mergeRua({ domain: "example.com", published, ours: OURS, inherited: null, ...given });
  if (!merged.ok) throw new Error(merged.error.outcome);
  return merged.value;
};
const mergeTexts = (...texts: readonly string[]): RuaMerge => merge({ kind: "texts", texts });
const codesOf = ({ warnings }: RuaMerge): string[] => warnings.map(({ code }) => code);
const textOf = (merged: RuaMerge): string => {
  if (merged.action === "conflict") throw new Error(merged.reason);
  return merged.value;
};

describe("an update changes nothing but the address", () => {
  test.each([
    ["v=DMARC1; p=reject; rua=mailto:a@example.com", `v=DMARC1; p=reject; rua=mailto:a@example.com,${URI}`],
    ["v=DMARC1;p=reject;rua=mailto:a@example.com;", `v=DMARC1;p=reject;rua=mailto:a@example.com,${URI};`],
    ["v=DMARC1; rua=mailto:a@example.com ; p=none", `v=DMARC1; rua=mailto:a@example.com,${URI} ; p=none`],
    [
      "v=DMARC1; p=none; RUA = mailto:a@x.example!10m  ;x=y",
      `v=DMARC1; p=none; RUA = mailto:a@x.example!10m,${URI}  ;x=y`,
    ],
    [
      "v=DMARC1; p=none; rua=mailto:a@x.example, mailto:b@x.example;",
      `v=DMARC1; p=none; rua=mailto:a@x.example, mailto:b@x.example,${URI};`,
    ],
    ["v=DMARC1; p=none; rua=mailto:a@x.example,; sp=none", `v=DMARC1; p=none; rua=mailto:a@x.example,${URI},; sp=none`],
    ["v=DMARC1; p=none; rua=mailto:a@x.example , ", `v=DMARC1; p=none; rua=mailto:a@x.example,${URI} , `],
    ["v=DMARC1; p=none; rua=a@x.example", `v=DMARC1; p=none; rua=a@x.example,${URI}`],
    [`v=DMARC1; p=none; rua=${OURS}`, `v=DMARC1; p=none; rua=${OURS},${URI}`],
    [
      "v=DMARC1; p=none; rua=mailto:a@x.example;mailto:b@x.example",
      `v=DMARC1; p=none; rua=mailto:a@x.example,${URI};mailto:b@x.example`,
    ],
    ["v=DMARC1; p=none; rua=", `v=DMARC1; p=none; rua=${URI}`],
    ["v=DMARC1; p=none; rua= ; sp=none;", `v=DMARC1; p=none; rua=${URI} ; sp=none;`],
    ["v=DMARC1; p=none; rua=,;", `v=DMARC1; p=none; rua=${URI},;`],
    ["v=DMARC1", `v=DMARC1; rua=${URI}`],
    ["v=DMARC1;", `v=DMARC1; rua=${URI}`],
    ["v=DMARC1; p=none", `v=DMARC1; p=none; rua=${URI}`],
    ["v=DMARC1; p=none;", `v=DMARC1; p=none; rua=${URI}`],
    ["v=DMARC1;p=none ; ; ", `v=DMARC1;p=none; rua=${URI}`],
    ["v=DMARC1; p=none; rua", `v=DMARC1; p=none; rua; rua=${URI}`],
    [
      "v=DMARC1; p=none; ruf=mailto:f@x.example!1m; fo=1;",
      `v=DMARC1; p=none; ruf=mailto:f@x.example!1m; fo=1; rua=${URI}`,
    ],
    [`v=DMARC1; p=none; ruf=${URI}`, `v=DMARC1; p=none; ruf=${URI}; rua=${URI}`],
    [" v = DMARC1 ;\tP=Reject", ` v = DMARC1 ;\tP=Reject; rua=${URI}`],
    [`v=DMARC1; p=none; rua=mailto:x${OURS}`, `v=DMARC1; p=none; rua=mailto:x${OURS},${URI}`],
  ])("%s", (text, value) => {
    expect(mergeTexts(text)).toMatchObject({ action: "update", current: text, value, strings: [value] });
  });
});

describe("nothing is to be done where our address is", () => {
  test.each([
    `v=DMARC1; p=none; rua=${URI}`,
    `v=DMARC1; p=none; rua=MAILTO:${OURS.toUpperCase()};`,
    `v=DMARC1; p=none; rua=mailto:a@example.com , ${URI}!10m ; x`,
    "v=DMARC1; p=none; rua=mailto:k3%797%40reports.example.net",
    `v=DMARC1; p=none; rua=${URI},${URI}`,
    `v=DMARC1; p=none; rua=${URI}?subject=x`,
  ])("%s", (text) => {
    expect(mergeTexts(text)).toMatchObject({ action: "none", current: text, value: text });
  });
});

describe("nothing published", () => {
  test("makes a record that asks for reports and for nothing else", () => {
    const value = `v=DMARC1; p=none; rua=${URI}`;
    expect(mergeTexts()).toEqual({ action: "create", current: null, value, strings: [value], warnings: [] });
  });

  test("is also what other texts at the name are", () => {
    expect(mergeTexts("v=spf1 -all", "google-site-verification=x")).toMatchObject({ action: "create", warnings: [] });
  });

  test("is also a text that only looks like a record, of which the owner hears", () => {
    for (const text of ["v=dmarc1; p=reject", '"v=DMARC1; p=reject"', "p=reject; v=DMARC1", "v=DMARC1 p=reject"]) {
      const merged = mergeTexts(text);
      expect({ action: merged.action, codes: codesOf(merged) }).toEqual({ action: "create", codes: ["near_miss"] });
    }
  });
});

describe("a name below a domain with a policy", () => {
  const inheritFrom = (text: string): InheritedRecord => {
    const [record] = dmarcRecordsIn([text]);
    if (record === undefined) throw new Error(text);
    const { sp, np, adkim, aspf, t } = record.values;
    const policy = { p: sp, sp, np, adkim, aspf, t, own: false, inheritedFrom: "example.com" };
    return { from: "example.com", record, policy };
  };

  test.each([
    ["v=DMARC1; p=reject", `v=DMARC1; p=reject; rua=${URI}`],
    ["v=DMARC1; p=reject; sp=quarantine; np=reject", `v=DMARC1; p=quarantine; rua=${URI}`],
    ["v=DMARC1; p=reject; adkim=s; aspf=s", `v=DMARC1; p=reject; adkim=s; aspf=s; rua=${URI}`],
    ["v=DMARC1; p=reject; t=y; pct=20", `v=DMARC1; p=reject; t=y; pct=20; rua=${URI}`],
    [
      "v=DMARC1; p=none; rua=mailto:a@example.com!1m, b@x.example,",
      `v=DMARC1; p=none; rua=mailto:a@example.com!1m,${URI}`,
    ],
    [`v=DMARC1; p=reject; rua=${URI}`, `v=DMARC1; p=reject; rua=${URI}`],
  ])("takes over %s", (text, value) => {
    const merged = merge({ kind: "texts", texts: [] }, { domain: "mail.example.com", inherited: inheritFrom(text) });
    expect(merged).toMatchObject({ action: "create", value });
    expect(codesOf(merged)[0]).toBe("inherits_policy");
  });

  test("hears which destinations must authorise the new name", () => {
    const inherited = inheritFrom("v=DMARC1; p=reject; rua=mailto:a@vendor.example,mailto:b@in.example.com");
    const merged = merge({ kind: "texts", texts: [] }, { domain: "mail.example.com", inherited });
    const [warning, ...others] = merged.warnings.filter(({ code }) => code === "inherited_rua_external");
    expect(others).toEqual([]);
    expect(warning?.message).toContain("a@vendor.example");
    expect(warning?.message).not.toContain("b@in.example.com");
  });

  test("with a record of its own keeps that", () => {
    const published = { kind: "texts", texts: ["v=DMARC1; p=none"] } as const;
    expect(merge(published, { inherited: inheritFrom("v=DMARC1; p=reject") })).toMatchObject({
      action: "update",
      value: `v=DMARC1; p=none; rua=${URI}`,
    });
  });
});

describe("a conflict is the owner's to solve", () => {
  const one = "v=DMARC1; p=none";

  test("several records", () => {
    const merged = mergeTexts(one, "other", `v=DMARC1; p=reject; rua=${URI}`);
    expect(merged).toMatchObject({ action: "conflict", reason: "several_records", holdsOurs: false });
    expect(merged.action === "conflict" && merged.seen).toEqual([one, `v=DMARC1; p=reject; rua=${URI}`]);
    expect(merged).toMatchObject({ value: null, strings: [] });
    expect(mergeTexts(`${one}; rua=${URI}`, one)).toMatchObject({ reason: "several_records", holdsOurs: false });
    expect(mergeTexts(one, one)).toMatchObject({ reason: "several_records" });
  });

  test("several rua tags, with our address or without", () => {
    for (const second of ["mailto:b@x.example", URI, ""]) {
      expect(mergeTexts(`${one}; rua=mailto:a@x.example; RUA=${second}`)).toMatchObject({
        action: "conflict",
        reason: "several_rua_tags",
      });
    }
  });

  test("an alias, whatever it leads to; its target is named, and whether it holds our address", () => {
    for (const [texts, holdsOurs] of [
      [[], false],
      [[one], false],
      [[`${one}; rua=${URI}`], true],
      [[`${one}; rua=${URI}`, one], false],
    ] as const) {
      const merged = merge({ kind: "alias", target: "d.vendor.example", texts });
      expect(merged).toMatchObject({ action: "conflict", reason: "cname", seen: texts, holdsOurs });
      expect(merged.action === "conflict" && merged.message).toContain("d.vendor.example");
    }
  });

  test("an alias comes with the record that could take its place, if there can be one", () => {
    const valueBehind = (...texts: readonly string[]): string | null =>
      merge({ kind: "alias", target: "d.vendor.example", texts }).value;
    expect(valueBehind("v=DMARC1; p=reject; rua=mailto:a@x.example")).toBe(
      `v=DMARC1; p=reject; rua=mailto:a@x.example,${URI}`,
    );
    expect(valueBehind()).toBe(`v=DMARC1; p=none; rua=${URI}`);
    expect(valueBehind(`${one}; rua=${URI}`)).toBe(`${one}; rua=${URI}`);
    expect(valueBehind(one, one)).toBeNull();
  });

  test("a record that would grow too long for the DNS", () => {
    expect(mergeTexts(`${one}; x=`.padEnd(65_530, "y"))).toMatchObject({ action: "conflict", reason: "too_long" });
  });
});

test.each(["servfail", "timeout", "refused", "malformed", "network_error", "aborted"] as const)(
  "%s is an error, never a record to create",
  (outcome) => {
    const merged = mergeRua({
      domain: "example.com",
      published: { kind: "failure", outcome },
      ours: OURS,
      inherited: null,
    });
    expect(merged).toEqual({ ok: false, error: { kind: "dns_failure", host: "_dmarc.example.com", outcome } });
  },
);

describe("warnings", () => {
  test.each([
    ["v=DMARC1; p=none; rua=mailto:a@x.example,mailto:b@x.example", "too_many_uris"],
    ["v=DMARC1; p=none; rua=a@x.example", "uri_without_mailto"],
    ["v=DMARC1", "p_missing"],
    ["v=DMARC1; p=x", "p_invalid"],
    [`v=DMARC1; p=none; x=${"y".repeat(200)}`, "over_255_octets"],
  ])("of %s once merged: %s", (text, code) => {
    expect(codesOf(mergeTexts(text))).toContain(code);
  });

  test("are about what is to be published: an empty rua is none any more", () => {
    expect(codesOf(mergeTexts("v=DMARC1; p=none; rua="))).toEqual([]);
  });
});

test("a long record comes in strings that make it up", () => {
  const text = `v=DMARC1; p=none; x=${"y".repeat(400)}`;
  const merged = mergeTexts(text);
  expect(merged.action === "update" && merged.strings.map(({ length }) => length)).toEqual([
    255,
    textOf(merged).length - 255,
  ]);
  expect(merged.action === "update" && merged.strings.join("")).toBe(textOf(merged));
});

test("an address of ours that is none is a bug of the caller", () => {
  expect(() =>
    mergeRua({ domain: "example.com", published: { kind: "texts", texts: [] }, ours: "x", inherited: null }),
  ).toThrow();
});
