import * as packet from "dns-packet";
import { DNS, SMTP_PORT } from "./hosts.ts";

/** The name server and the mail hosts that disappear for a while. Every address of 127.0.0.0/8 is there on Linux. */
export const OUTAGE_DNS = { ip: "127.10.9.53", port: DNS.port } as const;
const MAIL_HOST_IP = "127.10.9.1";
/** A user of any of its domains; nobody else exists there. */
const KNOWN_USER = /<known/i;

/** Something that can be switched off, so that its port refuses, and on again. */
export interface Switched {
  on(): Promise<void>;
  off(): void;
}

const recordsOf = (name: string, type: string): packet.Answer[] => {
  const about = { name, ttl: 5 };
  if (type === "MX") return [{ ...about, type, data: { preference: 10, exchange: `mx.${name}` } }];
  if (type === "A") return [{ ...about, type, data: MAIL_HOST_IP }];
  return type === "NS" ? [{ ...about, type, data: "ns.outage.test" }] : [];
};

const ZONE: packet.Answer = {
  type: "SOA",
  name: "test",
  ttl: 5,
  data: { mname: "ns.test", rname: "root.test", serial: 1, refresh: 60, retry: 60, expire: 60, minimum: 5 },
};

const respond = (bytes: Uint8Array): Buffer => {
  const query = packet.decode(Buffer.from(bytes));
  const [question] = query.questions ?? [];
  const answers = question === undefined ? [] : recordsOf(question.name, question.type);
  return packet.encode({
    type: "response",
    id: query.id ?? 0,
    flags: packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE,
    questions: query.questions ?? [],
    answers,
    authorities: answers.length === 0 ? [ZONE] : [],
  });
};

/** The later a domain stands in a list, the longer its answer takes, so that many are still asked for when the server goes away. */
const MS_PER_DOMAIN = 4;

const delayMsOf = (bytes: Uint8Array): number => {
  const [question] = packet.decode(Buffer.from(bytes)).questions ?? [];
  return Number(/\d+/.exec(question?.name ?? "")?.[0] ?? 0) * MS_PER_DOMAIN;
};

/** A name server on `OUTAGE_DNS` that knows every domain. */
export const switchedDns = (): Switched => {
  let socket: Bun.udp.Socket<"buffer"> | null = null;
  return {
    async on() {
      socket = await Bun.udpSocket({
        hostname: OUTAGE_DNS.ip,
        port: OUTAGE_DNS.port,
        socket: {
          data: async (self, bytes, port, address) => {
            const response = respond(bytes);
            await Bun.sleep(delayMsOf(bytes));
            try {
              if (self === socket) self.send(response, port, address);
            } catch {
              // The client has given up and closed its socket (ICMP port unreachable).
            }
          },
          error: () => undefined,
        },
      });
    },
    off() {
      socket?.close();
      socket = null;
    },
  };
};

const replyTo = (line: string): string => {
  if (/^EHLO/i.test(line)) return "250-mx\r\n250 PIPELINING\r\n";
  if (/^RCPT/i.test(line)) return KNOWN_USER.test(line) ? "250 2.1.5 Ok\r\n" : "550 5.1.1 User unknown\r\n";
  return /^QUIT/i.test(line) ? "221 2.0.0 Bye\r\n" : "250 2.0.0 Ok\r\n";
};

/** The mail host of all these domains; while it is off the system refuses new connections, as a firewall that rejects. */
export const switchedMailHost = (): Switched => {
  let listener: Bun.TCPSocketListener<{ pending: string }> | null = null;
  return {
    async on() {
      listener = Bun.listen<{ pending: string }>({
        hostname: MAIL_HOST_IP,
        port: SMTP_PORT,
        socket: {
          open(socket) {
            socket.data = { pending: "" };
            socket.write("220 mx ESMTP\r\n");
          },
          data(socket, bytes) {
            const lines = (socket.data.pending + bytes.toString("latin1")).split("\r\n");
            socket.data.pending = lines.pop() ?? "";
            socket.write(lines.map(replyTo).join(""));
            if (lines.some((line) => /^QUIT/i.test(line))) socket.end();
          },
          error: () => undefined,
        },
      });
    },
    off() {
      listener?.stop();
      listener = null;
    },
  };
};
