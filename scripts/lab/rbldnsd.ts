import { sendUdp } from "../../src/testing/dns-server.ts";
import { join } from "node:path";
import { LAB_LISTS, servedZone } from "./blocklists-lists.ts";
import { PROBE_HELO, type PostfixHost, RBLDNSD, SLOW_RBLDNSD, SUFFIX, addressOf } from "./hosts.ts";
import { serverDirectory } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "rbldnsd";
const READY_TRIES_MAX = 50;
const READY_PAUSE_MS = 100;

/** Lists addresses, in reverse, and names. */
export const ADDRESS_LIST = `bl.${SUFFIX}`;
export const NAME_LIST = `dbl.${SUFFIX}`;

/** The hosts that see a listed client. */
const LISTED: readonly PostfixHost[] = ["dnsblconnect", "dnsblrcpt", "dnsblsoft", "screened", "screenedout"];

/** A question for the A record of `name` (RFC 1035 §4.1). */
const questionBytes = (name: string): Uint8Array => {
  const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  return Uint8Array.from([0x4c, 0x41, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]);
};

/** Waits for a response over UDP: rbldnsd does not listen on TCP. */
const waitForAnswer = async (): Promise<void> => {
  const answered = Promise.withResolvers<true>();
  const socket = await Bun.udpSocket({
    connect: { hostname: RBLDNSD.ip, port: RBLDNSD.port },
    socket: { data: () => answered.resolve(true), error: () => undefined },
  });
  try {
    for (let tries = 0; tries < READY_TRIES_MAX; tries += 1) {
      socket.send(questionBytes(`2.0.0.127.${ADDRESS_LIST}`));
      if (await Promise.race([answered.promise, Bun.sleep(READY_PAUSE_MS)])) return;
    }
  } finally {
    socket.close();
  }
  throw new Error(`rbldnsd does not answer at ${RBLDNSD.ip}:${RBLDNSD.port}`);
};

/** Writes the data of the lists that the binary watches; the answer are rbldnsd's arguments for them. */
const writeLists = async (directory: string): Promise<readonly string[]> => {
  const sets = LAB_LISTS.flatMap((list) =>
    (list.datasets ?? []).map((dataset, index) => ({
      ...dataset,
      zone: servedZone(list),
      file: `${list.id}-${index}`,
    })),
  );
  for (const { file, lines } of sets) await Bun.write(join(directory, file), `${lines.join("\n")}\n`);
  return sets.map(({ zone, type, file }) => `${zone}:${type}:${file}`);
};

/** Starts rbldnsd with the lists that the binary watches, one of addresses and one of names that mail hosts use, from the unpacked package. unbound forwards to it. */
export const startRbldnsd = async (supervisor: Supervisor, parent: string, unpacked: string): Promise<void> => {
  const directory = await serverDirectory(parent, NAME);
  const addresses = ["127.0.0.2", ...LISTED.map(addressOf)];
  const text = `Listed, see https://${ADDRESS_LIST}/?$`;
  await Bun.write(join(directory, "addresses"), addresses.map((ip) => `${ip} :127.0.0.2:${text}\n`).join(""));
  await Bun.write(join(directory, "names"), `${PROBE_HELO} :127.0.1.2:Bad reputation: $\n`);
  const watched = await writeLists(directory);
  supervisor.start({
    name: NAME,
    argv: [
      ...[`${unpacked}/usr/sbin/rbldnsd`, "-n", "-u", "nobody", "-w", directory],
      ...["-b", `${RBLDNSD.ip}/${RBLDNSD.port}`],
      ...[`${ADDRESS_LIST}:ip4set:addresses`, `${NAME_LIST}:dnset:names`, ...watched],
    ],
  });
  await waitForAnswer();
};

/** Below the patience of unbound, and above what anybody would call quick: an answer needs several such questions. */
const DELAY_MS = 300;
const ID_BYTES = 2;
const WAITING_MAX = 1_000;

/** Starts the relay that hands every answer of rbldnsd on late. It ends with the process. */
export const startSlowList = async (): Promise<void> => {
  const askers = new Map<number, { readonly id: Uint8Array; readonly ip: string; readonly port: number }>();
  let next = 0;
  const front = await Bun.udpSocket({
    hostname: SLOW_RBLDNSD.ip,
    port: SLOW_RBLDNSD.port,
    socket: {
      data: (_, question, port, ip) => {
        const bytes = Uint8Array.from(question);
        next = (next + 1) % WAITING_MAX;
        askers.set(next, { id: bytes.slice(0, ID_BYTES), ip, port });
        // Equal ids of two askers would be mixed up: behind the relay each has the relay's own.
        bytes.set([next >> 8, next & 0xff]);
        back.send(bytes);
      },
      error: () => undefined,
    },
  });
  const back = await Bun.udpSocket({
    connect: { hostname: RBLDNSD.ip, port: RBLDNSD.port },
    socket: {
      data: (_, answer) => {
        const bytes = Uint8Array.from(answer);
        const asker = askers.get((bytes[0] ?? 0) * 256 + (bytes[1] ?? 0));
        if (asker === undefined) return;
        bytes.set(asker.id);
        setTimeout(() => sendUdp(front, bytes, asker.port, asker.ip), DELAY_MS);
      },
      error: () => undefined,
    },
  });
};
