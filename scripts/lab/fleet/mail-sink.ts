/** A mail server on loopback that takes everything, for the service's own mail. */

export interface SunkMail {
  readonly to: string;
  readonly subject: string;
  /** As it came: header and body. */
  readonly text: string;
}

export interface MailSink {
  readonly port: number;
  /** What came so far, in order. */
  readonly mails: readonly SunkMail[];
  stop(): void;
}

interface Session {
  buffer: string;
  isData: boolean;
  to: string;
}

const END_OF_DATA = "\r\n.\r\n";

const decodeWords = (text: string): string =>
  text.replace(/\?=\s+=\?/g, "?==?").replace(/=\?utf-8\?(q|b)\?([^?]*)\?=/gi, (_, encoding: string, body: string) =>
    encoding.toLowerCase() === "b"
      ? Buffer.from(body, "base64").toString()
      : Buffer.from(
          body
            .replaceAll("_", " ")
            .replace(/=([0-9A-F]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
          "latin1",
        ).toString(),
  );

const subjectOf = (text: string): string => {
  const head = text.slice(0, text.indexOf("\r\n\r\n")).replace(/\r\n[ \t]+/g, " ");
  return decodeWords(/^Subject: (.*)$/im.exec(head)?.[1] ?? "");
};

export const startMailSink = (): MailSink => {
  const mails: SunkMail[] = [];
  const answer = (session: Session, line: string): string => {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === "EHLO") return "250-sink.example\r\n250 8BITMIME\r\n";
    if (verb === "RCPT") session.to = /<([^>]*)>/.exec(line)?.[1] ?? "";
    if (verb === "DATA") {
      session.isData = true;
      return "354 go on\r\n";
    }
    return verb === "QUIT" ? "221 bye\r\n" : "250 ok\r\n";
  };
  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { buffer: "", isData: false, to: "" };
        socket.write("220 sink.example\r\n");
      },
      data(socket, bytes) {
        const session = socket.data;
        session.buffer += bytes.toString();
        for (;;) {
          const mark = session.isData ? END_OF_DATA : "\r\n";
          const end = session.buffer.indexOf(mark);
          if (end === -1) return;
          const text = session.buffer.slice(0, end);
          session.buffer = session.buffer.slice(end + mark.length);
          if (session.isData) {
            session.isData = false;
            mails.push({ to: session.to, subject: subjectOf(text), text });
            socket.write("250 taken\r\n");
          } else socket.write(answer(session, text));
        }
      },
    },
  });
  return { port: server.port, mails, stop: () => server.stop(true) };
};
