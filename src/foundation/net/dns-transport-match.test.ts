import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import type { Answer } from "dns-packet";
import { decodeQuery, encodeResponse, type ResponseParts } from "../../testing/dns-server.ts";
import type { DnsType } from "./dns.ts";
import { encodeQuery } from "./dns-message.ts";
import { matchPacket } from "./dns-transport.ts";

const NAME = "mail.example.com";
const ask = (type: DnsType, mixCase = false) =>
  encodeQuery(NAME, type, { random16: () => 0b1010_1010_1010_1010, mixCase, edns: true });
const respond = (type: DnsType, parts: ResponseParts) => {
  const query = ask(type);
  return { query, bytes: encodeResponse(decodeQuery(query.bytes), parts) };
};
const read = (type: DnsType, parts: ResponseParts) => {
  const { query, bytes } = respond(type, parts);
  return matchPacket(bytes, query);
};
const readRecords = (type: DnsType, answers: Answer[]) => {
  const response = read(type, { answers });
  return response.kind === "message" ? response.message.answers : response.kind;
};

describe("the query", () => {
  test("asks one question with recursion, AD and 1232 octets of EDNS", () => {
    expect(decodeQuery(ask("MX").bytes)).toMatchObject({ id: 0xaaaa, name: NAME, type: "MX", ednsBytes: 1232 });
    expect([...ask("MX").bytes.subarray(2, 4)]).toEqual([0x01, 0x20]);
  });

  test("mixes the case of letters by the random bits, and of letters only", () => {
    const { name } = decodeQuery(ask("MX", true).bytes);
    expect(name).toBe("MaIl.eXaMpLe.cOm");
  });

  test("goes out without OPT when EDNS is off", () => {
    const query = encodeQuery(NAME, "A", { random16: () => 1, mixCase: false, edns: false });
    expect(decodeQuery(query.bytes).ednsBytes).toBeUndefined();
    expect(query.bytes.length).toBe(query.questionEnd);
  });

  test("for the root is well-formed", () => {
    const query = encodeQuery(".", "NS", { random16: () => 1, mixCase: true, edns: true });
    expect(decodeQuery(query.bytes)).toMatchObject({ name: ".", type: "NS", ednsBytes: 1232 });
  });
});

describe("records", () => {
  test.each<[DnsType, Answer["type"], unknown, unknown]>([
    ["A", "A", "192.0.2.1", "192.0.2.1"],
    ["AAAA", "AAAA", "2001:db8:0:0:0:0:0:1", "2001:db8::1"],
    ["MX", "MX", { preference: 10, exchange: "MX.Example.com" }, { preference: 10, exchange: "mx.example.com" }],
    ["MX", "MX", { preference: 0, exchange: "." }, { preference: 0, exchange: "." }],
    ["TXT", "TXT", ["v=spf1 ", "-all"], "v=spf1 -all"],
    ["TXT", "TXT", [""], ""],
    ["TXT", "TXT", [Buffer.from([0xc3]), Buffer.from([0xa9])], "é"],
    ["TXT", "TXT", [Buffer.from([0xe9, 0x00])], "é\0"],
    ["TXT", "TXT", ["x".repeat(255), "y".repeat(255)], "x".repeat(255) + "y".repeat(255)],
    ["CNAME", "CNAME", "Alias.Example.NET", "alias.example.net"],
    ["PTR", "PTR", "host.example.net", "host.example.net"],
    ["NS", "NS", "ns.example.net", "ns.example.net"],
  ])("%s %#", (type, recordType, data, expected) => {
    const record = { name: NAME, type: recordType, ttl: 60, data } as Answer;
    expect(readRecords(type, [record])).toEqual([{ owner: NAME, type, ttlS: 60, data: expected as never }]);
  });

  test("SOA keeps its numbers", () => {
    const data = { mname: "ns.x", rname: "h.x", serial: 4_294_967_295, refresh: 2, retry: 3, expire: 4, minimum: 5 };
    const [record] = readRecords("SOA", [{ name: NAME, type: "SOA", ttl: 9, data }]);
    const expected = {
      primary: "ns.x",
      mailbox: "h.x",
      serial: 4_294_967_295,
      refreshS: 2,
      retryS: 3,
      expireS: 4,
      minimumS: 5,
    };
    expect(record).toEqual({ owner: NAME, type: "SOA", ttlS: 9, data: expected });
  });

  test("a TTL with the top bit set is zero", () => {
    expect(readRecords("A", [{ name: NAME, type: "A", ttl: 0x8000_0000, data: "192.0.2.1" }])).toMatchObject([
      { ttlS: 0 },
    ]);
  });

  test("other types and classes are left out", () => {
    const answers: Answer[] = [
      { name: NAME, type: "A", class: "CH", data: "192.0.2.9" },
      { name: NAME, type: "SRV", data: { port: 1, target: "x.example" } },
      { name: NAME, type: "A", data: "192.0.2.1" },
    ];
    expect(readRecords("A", answers)).toMatchObject([{ data: "192.0.2.1" }]);
  });

  test("compressed names are followed", () => {
    const query = ask("MX");
    // Preference 10; the exchange points at the second label of the question, at offset 17.
    const record = Buffer.from("c00c000f00010000003c0004000ac011", "hex");
    const overlong = Buffer.from("c00c000f00010000003c0005000ac01100", "hex");
    const header = Buffer.from(query.bytes.subarray(0, query.questionEnd));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(1, 6);
    header.writeUInt16BE(0, 10);
    expect(matchPacket(Buffer.concat([header, record]), query)).toMatchObject({
      message: { answers: [{ owner: NAME, data: { preference: 10, exchange: "example.com" } }] },
    });
    expect(matchPacket(Buffer.concat([header, overlong]), query).kind).toBe("malformed");
  });
});

describe("whose packet it is", () => {
  test.each<[string, ResponseParts, ReturnType<typeof read>["kind"]]>([
    ["another id", { id: 0xaaab }, "foreign"],
    ["another name", { question: { name: "mail.example.org", type: "A" } }, "foreign"],
    ["a longer name", { question: { name: `x.${NAME}`, type: "A" } }, "foreign"],
    ["another type", { question: { name: NAME, type: "AAAA" } }, "foreign"],
    ["another class", { question: { name: NAME, type: "A", class: "CH" } }, "foreign"],
    ["another opcode", { flags: 0x2000 }, "foreign"],
    ["another letter case", { question: { name: "MAIL.example.com", type: "A" } }, "case_changed"],
    ["no question with NOERROR", { question: null }, "noise"],
    ["no question with NXDOMAIN", { question: null, rcode: 3 }, "noise"],
    ["no question with SERVFAIL", { question: null, rcode: 2 }, "message"],
    ["truncated", { flags: 0x0200 }, "truncated"],
    ["ours", {}, "message"],
  ])("%s", (_, parts, kind) => expect(read("A", parts).kind).toBe(kind));

  test("the query itself, sent back, is foreign", () => {
    const query = ask("A");
    expect(matchPacket(query.bytes, query).kind).toBe("foreign");
  });
});

describe("messages that lie", () => {
  const answers: Answer[] = [{ name: NAME, type: "A", ttl: 60, data: "192.0.2.1" }];
  const change = (at: number, value: number) => {
    const { query, bytes } = respond("A", { answers });
    bytes.writeUInt16BE(value, at);
    return matchPacket(bytes, query).kind;
  };
  test.each([
    ["more answers than there are", 6, 2],
    ["65,535 answers", 6, 65_535],
    ["fewer answers than there are: not 'no records'", 6, 0],
    ["more authorities", 8, 1],
    ["more additionals", 10, 1],
  ])("%s", (_, at, value) => expect(change(at, value)).toBe("malformed"));

  test("two questions are noise", () => expect(change(4, 2)).toBe("noise"));

  test("an A record of three octets is malformed", () => {
    const { query, bytes } = respond("A", { answers });
    const short = Buffer.from(bytes.subarray(0, -1));
    short.writeUInt16BE(3, short.length - 5);
    expect(matchPacket(short, query).kind).toBe("malformed");
  });

  test("a TXT string that overruns its record is malformed, not cut", () => {
    const { query, bytes } = respond("TXT", { answers: [{ name: NAME, type: "TXT", data: ["abc"] }] });
    bytes[bytes.length - 4] = 4;
    expect(matchPacket(bytes, query).kind).toBe("malformed");
  });

  test("the upper bits of the code count: BADVERS is not NOERROR", () => {
    const opt = {
      name: ".",
      type: "OPT",
      udpPayloadSize: 512,
      extendedRcode: 1,
      ednsVersion: 0,
      flags: 0,
      options: [],
    };
    const response = read("A", { additionals: [opt as unknown as Answer] });
    expect(response.kind === "message" ? response.message.rcode : response.kind).toBe(16);
  });
});

describe("any bytes", () => {
  const answers: Answer[] = [
    { name: NAME, type: "CNAME", ttl: 60, data: "b.example" },
    { name: "b.example", type: "MX", ttl: 60, data: { preference: 1, exchange: "mx.example" } },
    { name: "b.example", type: "TXT", ttl: 60, data: ["one", "two"] },
  ];
  const authorities: Answer[] = [{ name: "example", type: "SOA", data: { mname: "a", rname: "b" } }];

  test("no truncation of a response passes for a message", () => {
    const { query, bytes } = respond("MX", { answers, authorities });
    const kinds = Array.from(bytes, (_, length) => matchPacket(bytes.subarray(0, length), query).kind);
    expect([...new Set(kinds)].sort()).toEqual(["foreign", "malformed", "noise"]);
    expect(kinds.indexOf("malformed")).toBe(query.questionEnd);
    expect(matchPacket(bytes, query).kind).toBe("message");
  });

  test("never throw, behind a right question", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 8, maxLength: 600 }), (tail) => {
        const query = ask("MX");
        const bytes = Buffer.concat([query.bytes.subarray(0, query.questionEnd), tail]);
        bytes.writeUInt16BE(0x8180, 2);
        tail.subarray(0, 6).forEach((byte, index) => void bytes.writeUInt8(index % 2 ? byte : 0, 6 + index));
        expect(matchPacket(bytes, query).kind).toMatch(/^(message|malformed)$/);
      }),
    );
  });

  test("never throw, from the first to the last", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const query = { ...ask("A"), id: ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0) };
        expect(matchPacket(bytes, query).kind).not.toBe("message");
      }),
    );
  });

  test("a response with some bytes changed never throws", () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(changes, (list) => {
        const { query, bytes } = respond("MX", { answers, authorities });
        for (const [at, value] of list) bytes[at % bytes.length] = value;
        expect(typeof matchPacket(bytes, query).kind).toBe("string");
      }),
      { numRuns: 1000 },
    );
  });
});
