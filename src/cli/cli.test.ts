import { describe, expect, test } from "bun:test";
import type { Command } from "commander";
import { createCommandLine } from "../testing/command-line.ts";
import { createProgram } from "./cli.ts";
import type { Io } from "./io.ts";

const { run } = createCommandLine();

/** Every command and group of the program with its path. */
const commandsOf = (parent: Command, path: readonly string[]): Array<{ name: string; command: Command }> =>
  parent.commands.flatMap((command) => {
    const own = [...path, command.name()];
    return [{ name: own.join(" "), command }, ...commandsOf(command, own)];
  });

const noInput = (): AsyncIterable<never> => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject() }) });
const nowhere: Io = {
  ...{
    environment: {},
    settingsFile: null,
    out: () => undefined,
    err: () => undefined,
    status: null,
    write: async () => undefined,
  },
  ...{ stdin: noInput, stdinLines: noInput, stdinIsTerminal: true, stdoutKind: "terminal", columns: 80 },
  ...{ untilSignal: async () => "SIGTERM", onHangup: () => undefined },
};
const COMMANDS = commandsOf(await createProgram(nowhere), []);

test("a command is loaded alone by its name, as all together have it", async () => {
  for (const { name, command } of COMMANDS.filter(({ name }) => !name.includes(" "))) {
    const alone = await createProgram(nowhere, { args: [name] });
    const loaded = commandsOf(alone, []);
    expect(loaded.length).toBeLessThan(COMMANDS.length / 2);
    expect(loaded.find((one) => one.name === name)?.command.helpInformation()).toBe(command.helpInformation());
  }
});

describe("help", () => {
  test.each(COMMANDS.map(({ name, command }) => [name, command] as const))(
    "%s --help describes it in a sentence, with an example that fits",
    async (name, command) => {
      const { status, out, err } = await run([...name.split(" "), "--help"]);
      expect({ status, err }).toEqual({ status: 0, err: "" });
      expect(out).toContain(`Usage: postwarden ${name}`);
      expect(command.description()).toMatch(/^[A-Z][a-z]+\b.*\.$/);
      const example = /\nExample:\n {2}postwarden (.+)/.exec(out)?.[1] ?? "";
      expect(example).toStartWith(name);
      if (command.commands.length > 0) return;
      for (const [option] of example.matchAll(/--[a-z-]+/g)) expect(out).toContain(option);
      if (!["dmarc export", "lists results", "lists changes", "help", "completion", "mcp"].includes(name))
        expect(out).toContain("--json");
    },
  );

  test.each(["--help", "-h", "help"])("%s lists every command", async (flag) => {
    const { status, out } = await run([flag]);
    expect(status).toBe(0);
    for (const { name: command } of COMMANDS.filter(({ name }) => !name.includes(" ")))
      expect(out).toMatch(new RegExp(`^  ${command}[ |]`, "m"));
  });

  test.each(["accounts help", "help accounts", "accounts --help"])("%s shows the group", async (line) => {
    const { status, out } = await run(line.split(" "));
    expect(status).toBe(0);
    expect(out).toContain("set-plan");
  });

  test("prints a guide, plain where it is piped and with colours on a terminal", async () => {
    const plain = await run(["help", "lists"], { stdoutKind: "pipe" });
    expect(plain.status).toBe(0);
    expect(plain.out).toContain("Verify up to a million addresses");
    expect(plain.out).not.toContain("\u001b");
    expect(plain.out).not.toContain(".md");
    expect((await run(["help", "lists"])).out).toContain("Verify up to a million addresses");
  });

  test("prints one section of a guide, and a page of the reference", async () => {
    const { status, out } = await run(["help", "dmarc-reports#report-mail-by-imap"], { stdoutKind: "pipe" });
    expect(status).toBe(0);
    expect(out).toContain("POSTWARDEN_IMAP_URL");
    expect(out).not.toContain("Enroll a domain");
    expect((await run(["help", "reference-settings"], { stdoutKind: "pipe" })).out).toContain("POSTWARDEN_PORT");
  });

  test.each(["no-topic", "lists#no-section", "lists#"])(
    "of %s says that it lists all topics, and ends with 2",
    async (topic) => {
      const { status, out, problem } = await run(["help", topic]);
      expect({ status, out }).toEqual({ status: 2, out: "" });
      expect(problem).toContain(`There is no topic or command "${topic}". \`postwarden help\` lists all.`);
    },
  );

  test("works whatever is wrong with the settings", async () => {
    expect((await run(["keys", "create", "--help"], { settings: { PORT: "x" } })).status).toBe(0);
    expect((await run(["version"], { settings: { PORT: "x" } })).status).toBe(0);
  });
});

describe("wrong usage ends with 2, says what is wrong on standard error, and nothing on standard output", () => {
  test.each([
    [["unknown"], "unknown command 'unknown'"],
    [["account", "list"], "Did you mean accounts?"],
    [["jobs"], "unknown command 'jobs'\n(Did you mean lists?)"],
    [["blacklist", "check"], "Did you mean blocklist?"],
    [["completion", "tcsh"], "bash, zsh, fish"],
    [["accounts", "remove"], "unknown command 'remove'"],
    [["--unknown"], "unknown option '--unknown'"],
    [["version", "--unknown"], "unknown option '--unknown'"],
    [["keys", "list", "--acount", "x"], "Did you mean --account?"],
    [["version", "something"], "too many arguments"],
    [["accounts", "create"], "missing required argument 'name'"],
    [["accounts", "set-plan", "x"], "missing required argument 'plan'"],
    [["accounts", "set-plan", "x", "gold"], "free, starter, growth, scale"],
    [["accounts", "create", "x", "--plan", "gold"], "free, starter, growth, scale"],
    [["accounts", "create", ""], "1 to 100 characters"],
    [["keys", "create", "--mode", "live"], "'--account <name>'"],
    [["keys", "create", "--account", "x"], "'--mode <mode>'"],
    [["keys", "create", "--account", "x", "--mode", "both"], "live, test"],
    [["keys", "create", "--account", "x", "--mode", "live", "--scopes", "all"], "verifications:read"],
    [["keys", "create", "--account", "x", "--mode", "live", "--expires", "soon"], '"soon" is not a time'],
    [["keys", "create", "--account", "x", "--mode", "live", "--expires", "2001-01-01"], "in the future"],
    [["keys", "rotate", "x", "--grace-hours", "-1"], "is not a number of hours"],
    [["keys", "rotate", "x", "--grace-hours", "a day"], "is not a number of hours"],
    [["credits", "grant", "x"], "missing required argument 'credits'"],
    [["credits", "grant", "x", "many"], "a whole number from 1"],
    [["credits", "grant", "x", "0"], "a whole number from 1"],
    [["credits", "grant", "x", "1.5"], "a whole number from 1"],
    [["credits", "grant", "x", "1e3"], "a whole number from 1"],
    [["credits", "grant", "x", "99999999999999999999"], "a whole number from 1"],
    [["inspect", "reply", "--stage", "data", "250 ok"], "rcpt, mail, banner, ehlo"],
    [["inspect", "address"], "pipe lines in"],
    [["verify"], "at least one address"],
    [["accounts"], "Usage: postwarden accounts"],
    [[], "Usage: postwarden"],
  ])("%j", async (args, said) => {
    const { status, out, err } = await run(args);
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(err).toContain(said);
    expect(err).not.toContain("    at ");
  });

  test("with --json the error is one JSON object", async () => {
    for (const args of [["accounts"], ["unknown"], ["accounts", "create"], ["credits", "grant", "x", "many"]]) {
      const { status, out, err } = await run([...args, "--json"]);
      expect({ status, out }).toEqual({ status: 2, out: "" });
      expect(JSON.parse(err)).toEqual({ error: expect.any(String), message: expect.stringMatching(/^[^(]\w+ \w/) });
    }
  });
});

describe("what cannot be done ends with 1", () => {
  const UNKNOWN = 'There is no account "nobody". `postwarden accounts list` lists all accounts.';
  test.each([
    [["accounts", "show", "nobody"], "unknown_account", UNKNOWN],
    [["accounts", "set-plan", "nobody", "free"], "unknown_account", UNKNOWN],
    [["credits", "show", "nobody"], "unknown_account", UNKNOWN],
    [["credits", "grant", "nobody", "5"], "unknown_account", UNKNOWN],
    [["keys", "list", "--account", "nobody"], "unknown_account", UNKNOWN],
    [["keys", "create", "--account", "nobody", "--mode", "live"], "unknown_account", UNKNOWN],
    [["keys", "rotate", "nothing"], "unknown_key", "There is no key with this id."],
    [["keys", "revoke", "nothing"], "unknown_key", "There is no key with this id."],
  ])("%j", async (args, error, said) => {
    const { status, out, err } = await run(args);
    expect({ status, out }).toEqual({ status: 1, out: "" });
    expect(err).toStartWith(`postwarden: ${said}`);
    const asJson = await run([...args, "--json"]);
    expect(asJson).toMatchObject({ status: 1, out: "" });
    expect(JSON.parse(asJson.err)).toEqual({ error, message: expect.stringContaining(said) });
  });

  test("an account that exists already", async () => {
    await run(["accounts", "create", "twice"]);
    const again = await run(["accounts", "create", "twice"]);
    expect(again).toMatchObject({ status: 1, out: "", err: "postwarden: An account with this name already exists." });
  });
});

test("version says the same in every form", async () => {
  const { version, schema } = (await run(["version", "--json"])).json;
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(schema).toBeGreaterThan(0);
  expect((await run(["version"])).out).toStartWith(`postwarden ${version} `);
  for (const flag of ["--version", "-V"]) expect(await run([flag])).toMatchObject({ status: 0, out: version });
});
