import addresses from "../../fixtures/addresses.json" with { type: "json" };
import { parseAddress, inspectAddress } from "../foundation/mail/address.ts";
import { encodeQuery } from "../foundation/net/dns-message.ts";
import { matchPacket } from "../foundation/net/dns-transport.ts";
import { parseCidr } from "../foundation/base/cidr.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { parseDnsServers, parseResolvConf } from "../foundation/net/resolv-conf.ts";
import { createReplyParser, REPLY_LIMITS } from "../foundation/net/smtp-reply.ts";
import { inspectReply } from "../verify/replies.ts";
import { DMARC_FUZZ_TARGETS } from "./fuzz-dmarc-targets.ts";
import { LIST_FUZZ_TARGETS } from "./fuzz-list-targets.ts";
import { NETWORK_FUZZ_TARGETS } from "./fuzz-network-targets.ts";
import { type FuzzTarget, must } from "./fuzz-target.ts";

const utf8 = new TextEncoder();
const textOf = (input: Uint8Array): string => new TextDecoder().decode(input);

const REPLIES = [
  "250 2.1.5 Ok\r\n",
  "550 5.1.1 <x@example.com>: Recipient address rejected: User unknown in virtual mailbox table\r\n",
  "250-mx.example.com\r\n250-PIPELINING\r\n250-SIZE 1000\r\n250 SMTPUTF8\r\n",
  "450 4.2.0 Greylisted, try again in 300 seconds\r\n",
  "554-5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.example\r\n554 5.7.1 see https://x.example/?q=192.0.2.1\r\n",
  "550 Requested action not taken: mailbox unavailable\r\n",
  "421 4.7.0 Too many connections from your host\r\n",
  "550 5.7.1 Пользователь не найден 用户不存在\r\n",
];

const QUERY = encodeQuery("mail.example.com", "MX", { random16: () => 0x1234, mixCase: false, edns: false });

const checkReplyParser = (input: Uint8Array): void => {
  const whole = createReplyParser();
  const all = whole.push(input);
  const split = createReplyParser();
  const pieces = [];
  for (let at = 0; at < input.length; at += 7) pieces.push(...split.push(input.subarray(at, at + 7)));
  must(
    whole.bufferedBytes() <= REPLY_LIMITS.lineBytesMax + REPLY_LIMITS.replyBytesMax,
    "the parser holds more than its ceiling",
  );
  const isCapped = all.some((result) => !result.ok && result.error === "too_many_replies");
  must(isCapped || JSON.stringify(all) === JSON.stringify(pieces), "splitting the input changed the replies");
};

const checkReading = (input: Uint8Array): void => {
  for (const stage of ["rcpt", "mail", "ehlo", "banner"] as const) {
    const read = inspectReply(textOf(input), stage);
    must(
      !(read.code !== null && read.code >= 400 && read.code < 500 && read.verdict === "undeliverable"),
      "a 4xx became undeliverable",
    );
    must(
      !(stage !== "rcpt" && read.reading.startsWith("mailbox_")),
      "a reply before RCPT was read as one about the mailbox",
    );
  }
};

const checkAddress = (input: Uint8Array): void => {
  const text = textOf(input);
  inspectAddress(text);
  const parsed = parseAddress(text);
  if (!parsed.ok) return;
  const { mailbox, domain } = parsed.value;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that none of them gets through is the point
  must(!/[\x00-\x1f\x7f]/.test(mailbox), "a control character got into RCPT");
  must(utf8.encode(mailbox).length <= 254, "longer than a path may be");
  must(/^[\x21-\x7e]+$/.test(domain), "the domain is not written in A-labels");
};

/** A response to QUERY whose bytes after the question section are the input. */
const checkDnsResponse = (input: Uint8Array): void => {
  const packet = new Uint8Array(Math.max(QUERY.bytes.length, 12) + input.length);
  packet.set(QUERY.bytes);
  packet[2] = 0x81;
  packet[3] = 0x80;
  packet.set([0, 2, 0, 1, 0, 1], 6);
  packet.set(input, QUERY.questionEnd);
  matchPacket(packet, QUERY);
  matchPacket(input, QUERY);
};

const checkSettings = (input: Uint8Array): void => {
  const text = textOf(input);
  parseResolvConf(text);
  parseDnsServers(text);
  const cidr = parseCidr(text);
  if (cidr.ok) createAddressPolicy([text]).isAllowed("192.0.2.1");
  must(typeof createAddressPolicy([]).isAllowed(text) === "boolean", "no answer");
};

/** Every parser of untrusted input. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "address", seeds: addresses.map(({ input }) => utf8.encode(input)), check: checkAddress },
  { name: "reply-parser", seeds: REPLIES.map((reply) => utf8.encode(reply)), check: checkReplyParser },
  { name: "reading", seeds: REPLIES.map((reply) => utf8.encode(reply)), check: checkReading },
  {
    name: "dns-response",
    seeds: [
      Uint8Array.from([0, 1, 0, 0, 0xc0, 12, 0, 15, 0, 1, 0, 0, 0, 60, 0, 5, 0, 10, 1, 0x61, 0]),
      Uint8Array.from([0, 1, 0, 1, 0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12]),
    ],
    check: checkDnsResponse,
  },
  {
    name: "settings",
    seeds: [
      "nameserver 192.0.2.1\noptions timeout:1",
      "192.0.2.1:53,[2001:db8::1]:5353",
      "10.0.0.0/8",
      "fd00::/8",
      "::ffff:10.0.0.1",
    ].map((text) => utf8.encode(text)),
    check: checkSettings,
  },
  ...DMARC_FUZZ_TARGETS,
  ...NETWORK_FUZZ_TARGETS,
  ...LIST_FUZZ_TARGETS,
];
