import { describe, expect, test } from "bun:test";
import type { DnsResourceRecord, DnsMessage } from "./dns-message.ts";
import { readAnswer } from "./dns-answer.ts";

const message = (parts: Partial<DnsMessage>): DnsMessage => ({
  rcode: 0,
  isAuthenticated: false,
  answers: [],
  hasStrayAnswers: false,
  authorities: [],
  sizeBytes: 100,
  ...parts,
});
const a = (owner: string, data: string, ttlS = 60): DnsResourceRecord => ({ owner, type: "A", ttlS, data });
const cname = (owner: string, data: string, ttlS = 60): DnsResourceRecord => ({ owner, type: "CNAME", ttlS, data });
const ns = (owner: string): DnsResourceRecord => ({ owner, type: "NS", ttlS: 60, data: "ns.example" });
const soa = (owner: string, ttlS: number, minimumS: number): DnsResourceRecord => ({
  owner,
  type: "SOA",
  ttlS,
  data: { primary: "ns", mailbox: "h", serial: 1, refreshS: 1, retryS: 1, expireS: 1, minimumS },
});
const read = (parts: Partial<DnsMessage>) => readAnswer(message(parts), "a.example", "A");

describe("records", () => {
  test("all of the name and type count, with the least time to live", () => {
    expect(read({ answers: [a("a.example", "192.0.2.1", 90), a("a.example", "192.0.2.2", 30)] })).toEqual({
      kind: "response",
      records: ["192.0.2.1", "192.0.2.2"],
      cnames: [],
      ttlS: 30,
      isVouched: true,
    });
  });

  test("a record of another name is not believed", () => {
    expect(read({ answers: [a("b.example", "192.0.2.66"), a("a.example", "192.0.2.1")] })).toMatchObject({
      records: ["192.0.2.1"],
    });
    // Nothing but a stranger's records is no statement that the name has none.
    expect(read({ answers: [a("b.example", "192.0.2.66")] }).kind).toBe("malformed");
  });

  test("aliases are followed in any order, and shorten the time to live", () => {
    const answers = [a("c.example", "192.0.2.1"), cname("b.example", "c.example", 7), cname("a.example", "b.example")];
    expect(read({ answers })).toEqual({
      kind: "response",
      records: ["192.0.2.1"],
      cnames: ["b.example", "c.example"],
      ttlS: 7,
      isVouched: true,
    });
  });

  test("a question about the alias itself follows nothing", () => {
    const reading = readAnswer(message({ answers: [cname("a.example", "b.example")] }), "a.example", "CNAME");
    expect(reading).toMatchObject({ kind: "response", records: ["b.example"], cnames: [] });
  });

  test("an alias without what lies behind it is to be followed by another question", () => {
    expect(read({ answers: [cname("a.example", "b.example")] })).toMatchObject({
      kind: "follow",
      cnames: ["b.example"],
    });
  });
});

describe("no records", () => {
  test.each([
    ["the lesser of both", [soa("example", 50, 20)], 20],
    ["the lesser of both, other way", [soa("example", 10, 20)], 10],
    ["the root's zone too", [soa(".", 10, 20)], 10],
    ["an SOA that may not be kept", [soa("example", 0, 0)], 0],
  ])("an SOA vouches for a no, and gives its time to live: %s", (_, authorities, ttlS) => {
    const said = { records: [], cnames: [], ttlS, isVouched: true };
    expect(read({ authorities })).toEqual({ kind: "no_data", ...said });
    expect(read({ rcode: 3, authorities })).toEqual({ kind: "nxdomain", ...said });
  });

  test.each([
    ["no SOA", []],
    ["the SOA of a foreign zone", [soa("other", 10, 20)]],
    ["the SOA of a zone whose name only ends alike", [soa("xample", 10, 20)]],
    ["the SOA of a name below", [soa("www.a.example", 10, 20)]],
  ])("%s vouches for nothing", (_, authorities) => {
    const said = { records: [], cnames: [], ttlS: 0, isVouched: false };
    expect(read({ authorities })).toEqual({ kind: "no_data", ...said });
    expect(read({ rcode: 3, authorities })).toEqual({ kind: "nxdomain", ...said });
  });

  test("an alias that ends nowhere is nxdomain", () => {
    expect(read({ rcode: 3, answers: [cname("a.example", "b.example")], authorities: [soa("example", 9, 9)] })).toEqual(
      {
        kind: "nxdomain",
        records: [],
        cnames: ["b.example"],
        ttlS: 9,
        isVouched: true,
      },
    );
  });

  test("an alias whose target has no such records is no_data when the SOA says so", () => {
    expect(read({ answers: [cname("a.example", "b.example")], authorities: [soa("example", 9, 9)] }).kind).toBe(
      "no_data",
    );
  });
});

describe("unknown is not no", () => {
  test.each<[string, Partial<DnsMessage>, string]>([
    ["SERVFAIL", { rcode: 2 }, "servfail"],
    ["FORMERR", { rcode: 1 }, "servfail"],
    ["NOTIMP", { rcode: 4 }, "servfail"],
    ["YXDOMAIN", { rcode: 6 }, "servfail"],
    ["BADVERS", { rcode: 16 }, "servfail"],
    ["a code whose low bits look like NXDOMAIN", { rcode: 19 }, "servfail"],
    ["REFUSED", { rcode: 5 }, "refused"],
    ["SERVFAIL with records", { rcode: 2, answers: [a("a.example", "192.0.2.1")] }, "servfail"],
    ["a referral", { authorities: [ns("example")] }, "servfail"],
    ["NXDOMAIN with the record", { rcode: 3, answers: [a("a.example", "192.0.2.1")] }, "malformed"],
    ["a referral that claims authority", { rcode: 0, authorities: [ns("."), ns("example")] }, "servfail"],
    [
      "records of another class beside an SOA",
      { hasStrayAnswers: true, authorities: [soa("example", 9, 9)] },
      "malformed",
    ],
    ["NXDOMAIN beside records of another class", { rcode: 3, hasStrayAnswers: true }, "malformed"],
    [
      "a record of another type beside an SOA",
      {
        answers: [{ owner: "a.example", type: "TXT", ttlS: 60, data: "hello" }],
        authorities: [soa("example", 9, 9)],
      },
      "malformed",
    ],
    [
      "an alias of somebody else beside an SOA",
      { answers: [cname("b.example", "c.example")], authorities: [soa("example", 9, 9)] },
      "malformed",
    ],
    ["an alias of itself", { answers: [cname("a.example", "a.example")] }, "cname_loop"],
    [
      "aliases in a circle",
      { answers: [cname("a.example", "b.example"), cname("b.example", "a.example")] },
      "cname_loop",
    ],
    [
      "a circle behind the name",
      { answers: [cname("a.example", "b"), cname("b", "c"), cname("c", "b")] },
      "cname_loop",
    ],
  ])("%s", (_, parts, kind) => expect(read(parts)).toEqual({ kind: kind as "servfail" }));

  test("name servers beside an SOA are no referral", () => {
    expect(read({ authorities: [ns("example"), soa("example", 9, 9)] })).toMatchObject({
      kind: "no_data",
      isVouched: true,
    });
  });

  test("eight aliases are followed, nine are not", () => {
    const chain = (length: number) =>
      Array.from({ length }, (_, n) => cname(n === 0 ? "a.example" : `n${n}`, `n${n + 1}`));
    expect(read({ answers: [...chain(8), a("n8", "192.0.2.1")] })).toMatchObject({ kind: "response" });
    expect(read({ answers: [...chain(9), a("n9", "192.0.2.1")] })).toEqual({ kind: "cname_loop" });
  });
});
