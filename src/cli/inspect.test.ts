import { describe, expect, test } from "bun:test";
import { createCommandLine } from "../testing/command-line.ts";

const { run } = createCommandLine();

const objectsOf = (out: string): unknown[] => out.split("\n").map((line) => JSON.parse(line));

describe("inspect address", () => {
  const texts = ["Someone@EXAMPLE.com", "no address", "ü@bücher.example"];
  const expected = [
    { input: "Someone@EXAMPLE.com", valid: true, normalized_email: "someone@example.com", reason: null },
    { input: "no address", valid: false, normalized_email: null, reason: expect.any(String) },
    { input: "ü@bücher.example", valid: true, normalized_email: "ü@xn--bcher-kva.example", reason: null },
  ];

  test("prints an object a line, in order, from arguments or from standard input, with --json or without", async () => {
    for (const flags of [[], ["--json"]]) {
      const given = await run(["inspect", "address", ...flags, ...texts]);
      const piped = await run(["inspect", "address", ...flags], { stdin: texts });
      expect(given).toMatchObject({ status: 0, err: "", out: piped.out });
      expect(objectsOf(given.out)).toEqual(expected);
    }
  });

  test("answers every line, the empty one too, and nothing for no line at all", async () => {
    expect(objectsOf((await run(["inspect", "address"], { stdin: ["", " "] })).out)).toHaveLength(2);
    expect(await run(["inspect", "address"], { stdin: [] })).toMatchObject({ status: 0, out: "" });
  });

  test("takes a text that begins with a dash behind --", async () => {
    const { status, json } = await run(["inspect", "address", "--", "-a@example.com"]);
    expect({ status, json }).toMatchObject({ status: 0, json: { input: "-a@example.com", valid: true } });
  });
});

describe("inspect reply", () => {
  test("has the fixed shape", async () => {
    const { json } = await run(["inspect", "reply", "550 5.1.1 User unknown"]);
    expect(json).toEqual({
      input: "550 5.1.1 User unknown",
      code: 550,
      enhanced: "5.1.1",
      reading: "mailbox_not_found",
      verdict: "undeliverable",
      sub_status: "mailbox_not_found",
      rule: expect.any(String),
    });
    expect(Object.keys(json)).toEqual(["input", "code", "enhanced", "reading", "verdict", "sub_status", "rule"]);
  });

  test("reads the same reply by the stage that it answers", async () => {
    const reply = "550 5.7.1 Access denied";
    const readings = [];
    for (const stage of ["rcpt", "mail", "banner", "ehlo"]) {
      readings.push((await run(["inspect", "reply", "--stage", stage, reply])).json.reading);
    }
    expect(readings).not.toContain("mailbox_not_found");
    const { json } = await run(["inspect", "reply", reply]);
    expect(json.reading).toBe(readings[0] ?? null);
  });

  test("takes a reply of several lines, written with line ends or with \\n", async () => {
    for (const reply of ["550-5.1.1 No such\n550 5.1.1 user", "550-5.1.1 No such\\n550 5.1.1 user"]) {
      expect((await run(["inspect", "reply", reply])).json).toMatchObject({ code: 550, reading: "mailbox_not_found" });
    }
  });

  test("calls what is no reply protocol_error", async () => {
    const { status, out } = await run(["inspect", "reply"], { stdin: ["hello", "", "999 x", "25 x"] });
    expect(status).toBe(0);
    for (const read of objectsOf(out)) expect(read).toMatchObject({ code: null, reading: "protocol_error" });
  });
});
