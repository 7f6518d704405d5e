import { EHLO, GREETING, onlyAlice } from "./fault-scripts.ts";
import type { Script } from "./fault-scripts.ts";
import type { FaultHost } from "./hosts.ts";

const LONG_LINE_CHARACTERS = 50_000;
const MEGABYTE = 1_048_576;
const DRIP_EVERY_MS = 1000;
const LINE_EVERY_MS = 300;
const FLOOD_LINES = 200;

const BANNER_LINE = "220-welcome to a host that likes to talk about itself at length\n";
const MEGABANNER = BANNER_LINE.repeat(Math.ceil(MEGABYTE / BANNER_LINE.length)) + GREETING;
const NOT_A_REPLY = "\0".repeat(2000);

const rcpt = (answer: Script["replies"]): Script => ({ banner: GREETING, replies: { EHLO, ...answer } });

/** Speaks clear text on after it promised TLS: whatever it says then must not be believed. */
const INJECTED = ["220 2.0.0 Ready to start TLS", EHLO, "250 2.1.0 Ok", "250 2.1.5 Ok", "550 5.1.1 No such user here"];

/** Servers that are broken or mean harm. */
export const HOSTILE: Readonly<Partial<Record<FaultHost, Script>>> = {
  silent: { deaf: true },
  silenttoo: { deaf: true },
  mutercpt: rcpt({ RCPT: {} }),
  bannerdrip: { banner: { flood: "2", everyMs: DRIP_EVERY_MS }, deaf: true },
  ehlodrip: { banner: GREETING, replies: { EHLO: { flood: "250-X-MORE\n", everyMs: LINE_EVERY_MS } } },
  ehloendless: { banner: GREETING, replies: { EHLO: { flood: "250-X-MORE\n".repeat(FLOOD_LINES) } } },
  rcptendless: rcpt({ RCPT: { flood: "250-2.1.5 Ok\n".repeat(FLOOD_LINES) } }),
  longline: rcpt({ RCPT: `250 2.1.5 ${"k".repeat(LONG_LINE_CHARACTERS)}` }),
  megabanner: { banner: MEGABANNER, replies: { EHLO, RCPT: onlyAlice } },
  nuls: { banner: NOT_A_REPLY, replies: { EHLO, RCPT: onlyAlice } },
  garbage: { banner: { text: "HTTP/1.1 400 Bad Request\nContent-Type: text/html\n\n<html>", ends: "drop" } },
  ssh: { banner: "SSH-2.0-OpenSSH_9.2p1 Debian-2", deaf: true },
  drops: rcpt({ RCPT: { ends: "drop" } }),
  resets: rcpt({ RCPT: { fragment: "250 2.1", ends: "reset" } }),
  closeseach: { banner: GREETING, replies: { EHLO: { text: EHLO, ends: "drop" } } },
  quitless: rcpt({ RCPT: onlyAlice, QUIT: {} }),
  injects: {
    banner: GREETING,
    replies: {
      EHLO: `${EHLO.replace("250 ", "250-")}\n250 STARTTLS`,
      STARTTLS: INJECTED.join("\n"),
      MAIL: "530 5.7.0 Must issue a STARTTLS command first",
      RCPT: "530 5.7.0 Must issue a STARTTLS command first",
    },
  },
  code999: rcpt({ RCPT: "999 9.9.9 What a code" }),
  code354: rcpt({ RCPT: "354 Go ahead" }),
  nocode: rcpt({ RCPT: "User unknown, I think" }),
  unaskedbanner: { banner: `${GREETING}\n550 5.1.1 No such user here`, replies: { EHLO, RCPT: onlyAlice } },
  unaskedehlo: { banner: GREETING, replies: { EHLO: `${EHLO}\n550 5.1.1 No such user here`, RCPT: onlyAlice } },
  unaskedmail: rcpt({ MAIL: "250 2.1.0 Ok\n250 2.1.5 Ok", RCPT: "550 5.1.1 No such user here" }),
  unaskedno: rcpt({ MAIL: "250 2.1.0 Ok\n550 5.1.1 No such user here", RCPT: onlyAlice }),
  muterset: rcpt({ RCPT: onlyAlice, RSET: {} }),
  everything: { banner: GREETING, replies: { QUIT: "250 Whatever you say" } },
};
