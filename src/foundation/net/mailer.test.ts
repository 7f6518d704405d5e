import { afterEach, describe, expect, test } from "bun:test";
import { createMailer } from "./mailer.ts";

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** A relay that answers by the first word of a line, and keeps what it was sent. */
const startRelay = (replies: Readonly<Record<string, string>> = {}) => {
  const lines: string[] = [];
  const all = new Map(
    Object.entries({
      EHLO: "250-relay\r\n250 8BITMIME",
      MAIL: "250 ok",
      RCPT: "250 ok",
      DATA: "354 go on",
      ".": "250 taken",
      QUIT: "221 bye",
      ...replies,
    }),
  );
  let inData = false;
  let rest = "";
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => void socket.write("220 relay\r\n"),
      data(socket, bytes) {
        const parts = (rest + bytes.toString()).split("\r\n");
        rest = parts.pop() ?? "";
        for (const line of parts) {
          lines.push(line);
          const word = line === "." ? "." : (line.split(/[ :]/)[0] ?? "");
          if (inData && word !== ".") continue;
          inData = word === "DATA" && all.get("DATA")?.startsWith("3") === true;
          socket.write(`${all.get(word.toUpperCase()) ?? "500 what"}\r\n`);
        }
      },
    },
  });
  stops.push(() => listener.stop(true));
  return { port: listener.port, lines };
};

const mail = { to: "ops@example.com", subject: "Größe", text: "line one\nü\n" };
const mailerAt = (port: number, password: string | null = null) =>
  createMailer(
    { host: "127.0.0.1", port, implicitTls: false, user: password && "user", password },
    "postwarden@example.com",
  );

describe("a mail", () => {
  test("is handed in with its envelope, subject and text, and marked as made by a machine", async () => {
    const { port, lines } = startRelay();
    expect(await mailerAt(port)(mail)).toEqual({ ok: true, value: null });
    const text = lines.join("\n");
    expect(text).toContain("MAIL FROM:<postwarden@example.com>");
    expect(text).toContain("RCPT TO:<ops@example.com>");
    expect(text).toMatch(/^Subject: =\?UTF-8\?/im);
    expect(text).toMatch(/^Auto-Submitted: auto-generated$/im);
  });

  test("with a page holds the text first and the page second, for the reader's program to choose", async () => {
    const { port, lines } = startRelay();
    expect(await mailerAt(port)({ ...mail, html: "<p>Größe</p>" })).toMatchObject({ ok: true });
    const text = lines.join("\n");
    expect(text).toMatch(/^Content-Type: multipart\/alternative;/im);
    const [plain, page] = [text.search(/^Content-Type: text\/plain/im), text.search(/^Content-Type: text\/html/im)];
    expect(plain).toBeGreaterThan(0);
    expect(page).toBeGreaterThan(plain);
  });

  test("that can be stopped by one click says where (RFC 8058), and no other does", async () => {
    const { port, lines } = startRelay();
    const oneClickUrl = `https://verify.example.org/notifications/off/${"a".repeat(43)}`;
    await mailerAt(port)({ ...mail, oneClickUrl });
    const header = lines.join("\n").replaceAll("\n ", " ");
    expect(header).toMatch(new RegExp(`^List-Unsubscribe: <${oneClickUrl}>$`, "m"));
    expect(header).toMatch(/^List-Unsubscribe-Post: List-Unsubscribe=One-Click$/m);
    lines.length = 0;
    await mailerAt(port)({ ...mail, oneClickUrl: null });
    await mailerAt(port)(mail);
    expect(lines.join("\n")).not.toContain("List-");
  });

  test("without a page is plain text", async () => {
    const { port, lines } = startRelay();
    await mailerAt(port)(mail);
    expect(lines.join("\n")).not.toContain("multipart");
  });

  test.each([
    ["the recipient", { RCPT: "550 5.1.1 no such user" }, true],
    ["the message", { ".": "554 5.6.0 no" }, true],
    ["the recipient for now", { RCPT: "450 4.2.1 later" }, false],
    ["the sender", { MAIL: "550 5.7.1 not you" }, false],
  ] as const)("that a relay refuses for %s is a failure", async (_, replies, isFinal) => {
    const { port } = startRelay(replies);
    expect(await mailerAt(port)(mail)).toMatchObject({ ok: false, error: { isFinal } });
  });

  test("waits for a relay that is not there", async () => {
    const { port } = startRelay();
    for (const stop of stops.splice(0)) stop();
    expect(await mailerAt(port)(mail)).toMatchObject({ ok: false, error: { isFinal: false } });
  });

  test("is not sent, nor its password, to a relay without TLS", async () => {
    const { port, lines } = startRelay();
    const sent = await mailerAt(port, "hunter2")(mail);
    expect(sent).toMatchObject({ ok: false, error: { isFinal: false } });
    expect(JSON.stringify(sent)).not.toContain("hunter2");
    expect(lines.join()).not.toContain("AUTH");
    expect(lines.join()).not.toContain("MAIL FROM");
  });
});
