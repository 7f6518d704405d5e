import dictionary1 from "../../fixtures/evidence-dictionary-1.txt" with { type: "text" };
import dictionary2 from "../../fixtures/evidence-dictionary-2.txt" with { type: "text" };
import evidenceExample from "./evidence-example.json" with { type: "json" };
import { expect, test } from "bun:test";
import { zstdCompressSync } from "node:zlib";
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

test("evidence that was stored as JSON is read, too", () => {
  const evidence = evidenceWith();
  expect(unpackEvidence(Buffer.from(JSON.stringify(evidence)))).toEqual(evidence);
});

test("evidence that was compressed by zstd is read, too", () => {
  const evidence = evidenceWith();
  const packed = zstdCompressSync(JSON.stringify(evidence), { dictionary: Buffer.from(dictionary1) });
  expect(unpackEvidence(Buffer.concat([Buffer.of(1), packed]))).toEqual(evidence);
});

test("evidence longer than the window of the compression is read back as it was", () => {
  const texts = Array.from({ length: 3_000 }, (_, n) => `line ${n} of a long transcript, and ${n * 7_919} more`);
  const evidence = evidenceWith({ findings: texts.map((reply) => findingWith({ reply })) });
  expect(unpackEvidence(packEvidence(evidence))).toEqual(evidence);
});

test("what is neither is refused", () => {
  expect(() => unpackEvidence(Buffer.of(99, 1, 2))).toThrow("unknown format 99");
  for (const format of [1, 2]) expect(() => unpackEvidence(Buffer.of(format, 255, 2))).toThrow();
});

test("a dictionary never changes: what was stored with it could not be read any more", () => {
  expect(sha256(dictionary1)).toBe("fc2c116697775883320f057d6ef0762a98a83c61b3e0078f776cbfdb54146b98");
  expect(sha256(dictionary2)).toBe("d5b9ea24b724b7009fe101574f8f3f7c77c2740254615b53d98c08aca9b957bb");
});

test("the documented example is what a verification concludes", () => {
  const example = evidenceSchema.parse(evidenceExample);
  expect(example).toEqual(evidenceExample as typeof example);
  expect(concludeVerification(example, "2026-01-01T00:00:00.000Z").evidence).toEqual(example);
});
