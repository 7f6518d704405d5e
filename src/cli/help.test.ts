import { describe, expect, test } from "bun:test";
import { createCommandLine } from "../testing/command-line.ts";
import { GUIDES, terminalText } from "../service/docs/guides.ts";

const { run } = createCommandLine();

const REFERENCE = ["settings", "commands", "verdicts", "metrics"].map((name) => `reference-${name}`);
const TOPICS = [...GUIDES.map(({ slug }) => slug), ...REFERENCE];

describe("help TOPIC", () => {
  test.each(TOPICS)(
    "prints %s whole and without control characters where standard output is no terminal",
    async (slug) => {
      const { status, out, err } = await run(["help", slug], { stdoutKind: "pipe" });
      expect({ status, err }).toEqual({ status: 0, err: "" });
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be there
      expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
      const { title = "", text = "" } = GUIDES.find((guide) => guide.slug === slug) ?? {};
      expect(out).toContain(title);
      for (const [, heading = ""] of text.matchAll(/^## (.+)$/gm)) expect(out).toContain(heading);
      for (const [, topic = ""] of out.matchAll(/\(postwarden\s+help\s+([a-z-]+)\)/g)) expect(TOPICS).toContain(topic);
    },
  );

  test("has colours on a terminal, around the same words", () => {
    for (const guide of GUIDES) {
      const coloured = terminalText(guide, { colors: true, columns: 80 });
      expect(coloured).toContain("\u001b[");
      expect(Bun.stripANSI(coloured)).toContain(guide.title);
    }
  });

  test("names the command that prints another guide", async () => {
    const { out } = await run(["help", "getting-started"]);
    expect(out.replaceAll(/\s+/g, " ")).toContain("(postwarden help sender-reputation)");
    expect(out.replaceAll(/\s+/g, " ")).toContain("(/docs/reference-api of the service)");
  });

  test.each(["no-such-topic", "keys no-such-command"])("%s is wrong usage, and lists the topics", async (words) => {
    const { status, out, problem } = await run(["help", ...words.split(" ")]);
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(problem).toContain(`There is no topic or command "${words}"`);
    for (const { slug, title } of GUIDES) expect(problem).toMatch(new RegExp(`^  ${slug} +${title}$`, "m"));
  });
});
