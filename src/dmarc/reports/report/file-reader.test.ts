import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { ReportRow } from "./report-row.ts";
import { hashRows } from "./file-reader.ts";

const rowOf = (n: number): ReportRow => ({
  ...{ sourceIp: `192.0.2.${n % 250}`, count: n, disposition: "none", dkim: "pass", spf: "fail", reasons: [] },
  ...{ headerFrom: "x.example", envelopeFrom: null, envelopeTo: "ü.example" },
  ...{ dkimResults: [{ domain: "x.example", selector: null, result: "pass", humanResult: '"' }], spfResults: [] },
});

test.each([0, 1, 499, 500, 501, 1_700])(
  "the hash of %p rows is that of their JSON, as earlier versions stored it",
  async (count) => {
    const rows = Array.from({ length: count }, (_, n) => rowOf(n));
    const whole = createHash("sha256").update(JSON.stringify(rows)).digest("base64url").slice(0, 27);
    expect(await hashRows({ rows })).toBe(whole);
  },
);
