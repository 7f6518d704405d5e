import { describe, expect, test } from "bun:test";
import { splitCommand, readPath } from "./smtp-receiver-envelope.ts";

test.each([
  ["mail FROM:<a@b.example>", "MAIL", "FROM:<a@b.example>"],
  ["QUIT", "QUIT", ""],
  ["NOOP  x y ", "NOOP", "x y"],
  ["", "", ""],
])("%j has the verb %s", (line, verb, argument) => {
  expect(splitCommand(line)).toEqual({ verb, argument });
});

describe("a path", () => {
  test.each([
    ["FROM", "FROM:<a@b.example>", "a@b.example"],
    ["FROM", "from: <a@b.example>", "a@b.example"],
    ["FROM", "FROM:<>", ""],
    ["TO", "TO:<@relay.example,@b.example:a@b.example>", "a@b.example"],
    ["TO", 'TO:<"known"@r.test>', '"known"@r.test'],
    ["TO", "TO:<Postmaster>", "Postmaster"],
    ["TO", "TO:<user.@r.test.>", "user.@r.test."],
  ] as const)("%s %s is %s", (keyword, argument, address) => {
    expect(readPath(keyword, argument)).toMatchObject({ ok: true, value: { address } });
  });

  test.each([
    ["FROM", "FROM:a@b.example"],
    ["FROM", "FROM:<a@b.example"],
    ["FROM", "TO:<a@b.example>"],
    ["FROM", "FROM:<postmaster>"],
    ["FROM", "FROM:<a@b@c.example>"],
    ["FROM", "FROM:<a b@c.example>"],
    ["FROM", "FROM:<a@b.example>SIZE=1"],
    ["TO", "TO:<>"],
    ["TO", "TO:<a>"],
    ["TO", "TO:<@b.example>"],
    ["TO", "TO:<a\u200b@b.example>"],
    ["TO", "TO:<a\u0000@b.example>"],
  ] as const)("%s %j is none", (keyword, argument) => {
    expect(readPath(keyword, argument)).toEqual({ ok: false, error: "address" });
  });

  test("has parameters by their names", () => {
    const path = readPath("FROM", "FROM:<> size=10 BODY=8BITMIME  SMTPUTF8 X=");
    expect(path.ok && [...path.value.parameters]).toEqual([
      ["SIZE", "10"],
      ["BODY", "8BITMIME"],
      ["SMTPUTF8", null],
      ["X", ""],
    ]);
  });

  test.each(["FROM:<> SIZE=1 size=2", "FROM:<> =1", "FROM:<> X=a\u0001b"])("%j has a bad parameter", (argument) => {
    expect(readPath("FROM", argument)).toEqual({ ok: false, error: "parameter" });
  });
});
