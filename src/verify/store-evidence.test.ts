import dictionary1 from "../../fixtures/evidence-dictionary-1.txt" with { type: "text" };
import dictionary2 from "../../fixtures/evidence-dictionary-2.txt" with { type: "text" };
import dictionary3 from "../../fixtures/evidence-dictionary-3.txt" with { type: "text" };
import dictionary4 from "../../fixtures/evidence-dictionary-4.txt" with { type: "text" };
import evidenceExample from "./evidence-example.json" with { type: "json" };
import { expect, test } from "bun:test";
import { deflateRawSync, zstdCompressSync } from "node:zlib";
import { sha256 } from "../foundation/base/secrets.ts";
import { evidenceWith, findingWith } from "../testing/evidence.ts";
import { evidenceSchema } from "./evidence.ts";
import { concludeVerification } from "./verdict.ts";
import { packEvidence, unpackEvidence } from "./store.ts";

test("evidence is read back as it was, and takes a fraction of its JSON", () => {
  const evidence = evidenceWith({ findings: [findingWith(), findingWith({ reading: "greylisted", retryable: true })] });
  const packed = packEvidence(evidence);
  expect(unpackEvidence(packed)).toEqual(evidence);
  expect(packed.length).toBeLessThan(JSON.stringify(evidence).length / 3);
});

test("the evidence of an ordinary check takes less than 1 kB", () => {
  const example = evidenceSchema.parse(evidenceExample);
  expect(JSON.stringify(example).length).toBeGreaterThan(2_500);
  expect(packEvidence(example).length).toBeLessThan(1_000);
});

/** The JSON of evidence as it was written before its names were changed. */
const formerJson = (evidence: ReturnType<typeof evidenceWith>): string =>
  JSON.stringify(evidence, (_, value: unknown) =>
    isRecord(value)
      ? Object.fromEntries(
          Object.entries(value).map(([name, one]) => [FORMER_FIELDS[name] ?? name, FORMER_VALUES[String(one)] ?? one]),
        )
      : value,
  );
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const FORMER_FIELDS: Readonly<Record<string, string>> = {
  sessions: "dialogues",
  dns_queries: "questions",
  egress: "exit",
  cooldown_since: "remembered_since",
};
const FORMER_VALUES: Readonly<Record<string, string>> = {
  "replies-out-of-sync": "dialogue-out-of-step",
  no_egress: "no_exit",
  response: "answer",
};

const written = (): ReturnType<typeof evidenceWith> => {
  const example = evidenceSchema.parse(evidenceExample);
  const findings = ["replies-out-of-sync", "no_egress"].map((rule) =>
    findingWith({ rule, reply: '550 {"exit":"two","questions":[],"rule":"no_exit","outcome":"answer"}' }),
  );
  return { ...example, attempts: [...example.attempts, ...evidenceWith({ findings }).attempts] };
};

test.each<[string, (json: string) => Buffer]>([
  ["as JSON", (json) => Buffer.from(json)],
  ["by zstd", (json) => formatted(1, zstdCompressSync(json, { dictionary: Buffer.from(dictionary1) }))],
  ["by DEFLATE", (json) => formatted(2, deflateRawSync(json, { dictionary: Buffer.from(dictionary2) }))],
  [
    "by DEFLATE with the third dictionary",
    (json) => formatted(3, deflateRawSync(json, { dictionary: Buffer.from(dictionary3) })),
  ],
])("evidence that was stored %s is read under its present names", (_, store) => {
  const former = formerJson(written());
  for (const name of [...Object.values(FORMER_FIELDS), ...Object.values(FORMER_VALUES)])
    expect(former).toContain(`"${name}"`);
  expect(unpackEvidence(store(former))).toEqual(written());
});

const formatted = (format: number, packed: Uint8Array): Buffer => Buffer.concat([Buffer.of(format), packed]);

test("evidence longer than the window of the compression is read back as it was", () => {
  const texts = Array.from({ length: 3_000 }, (_, n) => `line ${n} of a long transcript, and ${n * 7_919} more`);
  const evidence = evidenceWith({ findings: texts.map((reply) => findingWith({ reply })) });
  expect(unpackEvidence(packEvidence(evidence))).toEqual(evidence);
});

test("what is neither is refused", () => {
  expect(() => unpackEvidence(Buffer.of(99, 1, 2))).toThrow("unknown format 99");
  for (const format of [1, 2, 3, 4]) expect(() => unpackEvidence(Buffer.of(format, 255, 2))).toThrow();
});

test("a dictionary never changes: what was stored with it could not be read any more", () => {
  expect(sha256(dictionary1)).toBe("fc2c116697775883320f057d6ef0762a98a83c61b3e0078f776cbfdb54146b98");
  expect(sha256(dictionary3)).toBe("caa558b91fc97bc53990cc32b1cab330bdea8ed773b668d5eb0c4b7f4f653546");
  expect(sha256(dictionary4)).toBe("c2dc08cc5e7c8e84f52b8dbfc044ae6facebdca5af20f7682a10e2f7fc0f66bc");
  expect(sha256(dictionary2)).toBe("d5b9ea24b724b7009fe101574f8f3f7c77c2740254615b53d98c08aca9b957bb");
});

test("the documented example is what a verification concludes", () => {
  const example = evidenceSchema.parse(evidenceExample);
  expect(example).toEqual(evidenceExample as typeof example);
  expect(concludeVerification(example, "2026-01-01T00:00:00.000Z").evidence).toEqual(example);
});
