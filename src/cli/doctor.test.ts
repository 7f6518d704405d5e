import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { doctorFindings, runChecks } from "../doctor/doctor-check.ts";
import { doctorText, linkedFindings } from "./doctor.ts";

const { ok, warn, fail } = doctorFindings("thing");

test("checks run at the same time, and what takes too long does not hold up the others", async () => {
  const clock = createTestClock();
  const running = runChecks(
    [
      { area: "DNS", run: () => new Promise(() => undefined) },
      { area: "Data", run: () => ok("Fine.") },
      { area: "Data", run: async () => [warn("Nearly."), fail("No.")] },
      {
        area: "Alert mail",
        run: () => {
          throw new Error("EACCES");
        },
      },
    ],
    clock,
  );
  await clock.advance(25_000);
  expect(await running).toEqual([
    {
      ...{ area: "DNS", check: "dns", state: "warn" },
      message:
        "A check was not finished within 25 seconds: a server responds too slowly. Run doctor again. See `postwarden help sender-reputation#resolver`.",
    },
    { area: "Data", check: "thing", state: "ok", message: "Fine." },
    { area: "Data", check: "thing", state: "warn", message: "Nearly." },
    { area: "Data", check: "thing", state: "fail", message: "No." },
    {
      ...{ area: "Alert mail", check: "alert_mail", state: "fail" },
      message: "A check ended with an error: EACCES. Run doctor as root.",
    },
  ]);
});

test("findings name the manual by its URL where that is known, else by a command", () => {
  const findings = [{ area: "Data", ...warn("See `postwarden help lists#results`.") }];
  const messages = (config: { baseUrl: string | null; docs: boolean }) =>
    linkedFindings(findings, config).map(({ message }) => message);
  expect(messages({ baseUrl: "https://mail.example", docs: true })).toEqual([
    "See https://mail.example/docs/lists#results.",
  ]);
  for (const config of [
    { baseUrl: null, docs: true },
    { baseUrl: "https://mail.example", docs: false },
  ])
    expect(messages(config)).toEqual(["See `postwarden help lists#results`."]);
});

test("the text groups findings by area and wraps them below their beginning", () => {
  const findings = [
    { area: "Data", ...ok("Fine.") },
    { area: "DNS", ...fail(`${"word ".repeat(20)}end.`) },
    { area: "Data", ...warn("Nearly.") },
  ];
  const text = doctorText(findings, 40);
  expect(text).toBe(`Data
  ok    Fine.
  warn  Nearly.

DNS
  fail  word word word word word word
        word word word word word word
        word word word word word word
        word word end.

1 ok, 1 warning, 1 failure`);
});

test("a finding that needs attention ends with its section of the manual", async () => {
  const known = doctorFindings("known", "Known", "sender-reputation#helo-name");
  const run = () => [known.ok("Fine."), known.warn("Nearly."), known.fail("Run: ip a"), warn("No section.")];
  const found = await runChecks([{ area: "Sender", run }], createTestClock());
  const hint = "`postwarden help sender-reputation#helo-name`";
  const expected = ["Fine.", `Nearly. See ${hint}.`, `Run: ip a (see ${hint})`, "No section."];
  expect(found.map(({ message }) => message)).toEqual(expected);
});
