import ipaddr from "ipaddr.js";

/** What a database can say of a network: the types that GeoIP databases have. */
export type MmdbValue = string | number | boolean | readonly MmdbValue[] | { readonly [key: string]: MmdbValue };

export interface MadeMmdb {
  readonly type?: string;
  readonly ipVersion?: 4 | 6;
  readonly recordBits?: 24 | 28 | 32;
  readonly builtAtMs?: number;
  /** More metadata, or other values of it. */
  readonly metadata?: Readonly<Record<string, MmdbValue>>;
}

const MARKER = Buffer.from("abcdef4d61784d696e642e636f6d", "hex");
const SEPARATOR = Buffer.alloc(16);
const STRING = 2;
const UINT32 = 6;
const MAP = 7;
const ARRAY = 11;
const BOOLEAN = 14;

/** The control byte of a value, with its type where that is an extended one, and its size (MaxMind DB 2.0, "Data Field Format"). */
const control = (type: number, size: number): Buffer => {
  const [low, more] =
    size < 29
      ? [size, Buffer.alloc(0)]
      : size < 285
        ? [29, Buffer.from([size - 29])]
        : [30, Buffer.from([(size - 285) >> 8, (size - 285) & 0xff])];
  const head = type > 7 ? [low, type - 7] : [(type << 5) | low];
  return Buffer.concat([Buffer.from(head), more]);
};

const encode = (value: MmdbValue): Buffer => {
  if (typeof value === "string") {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(STRING, bytes.length), bytes]);
  }
  if (typeof value === "boolean") return control(BOOLEAN, value ? 1 : 0);
  if (typeof value === "number") {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return Buffer.concat([control(UINT32, 4), bytes]);
  }
  if (Array.isArray(value)) return Buffer.concat([control(ARRAY, value.length), ...value.map(encode)]);
  const entries = Object.entries(value);
  return Buffer.concat([control(MAP, entries.length), ...entries.flatMap(([key, of]) => [encode(key), encode(of)])]);
};

/** A node of the tree; a branch is the number of another node, the place of data as `{ at }`, or nothing. */
type Branch = number | { readonly at: number } | null;
type Node = [left: Branch, right: Branch];

const bitsOf = (network: string, ipVersion: 4 | 6): string => {
  const [ip = "", length = ""] = network.split("/");
  const address = ipaddr.parse(ip);
  const own = address
    .toByteArray()
    .map((byte) => byte.toString(2).padStart(8, "0"))
    .join("")
    .slice(0, Number(length));
  return ipVersion === 6 && address.kind() === "ipv4" ? "0".repeat(96) + own : own;
};

const insert = (nodes: Node[], bits: string, at: number): void => {
  let node = 0;
  for (const [depth, bit] of [...bits].entries()) {
    const side = bit === "0" ? 0 : 1;
    const here = nodes[node];
    if (here === undefined) throw new Error("no such node");
    if (depth === bits.length - 1) {
      here[side] = { at };
      return;
    }
    const next = here[side];
    if (typeof next === "object" && next !== null) throw new Error("a network inside another one");
    if (next === null) nodes.push([null, null]);
    node = next ?? nodes.length - 1;
    here[side] = node;
  }
};

const recordOf = (branch: Branch, nodeCount: number): number => {
  if (branch === null) return nodeCount;
  return typeof branch === "number" ? branch : nodeCount + SEPARATOR.length + branch.at;
};

const encodeNode = ([left, right]: readonly [number, number], recordBits: 24 | 28 | 32): Buffer => {
  const node = Buffer.alloc(recordBits / 4);
  if (recordBits === 32) {
    node.writeUInt32BE(left, 0);
    node.writeUInt32BE(right, 4);
    return node;
  }
  node.writeUIntBE(left & 0xff_ff_ff, 0, 3);
  node.writeUIntBE(right & 0xff_ff_ff, recordBits === 28 ? 4 : 3, 3);
  if (recordBits === 28) node[3] = ((left >>> 24) << 4) | (right >>> 24);
  return node;
};

/** Writes a database in the MaxMind DB format 2.0: the record of each network; networks must not overlap. */
export const writeMmdb = (networks: Readonly<Record<string, MmdbValue>>, made: MadeMmdb = {}): Buffer => {
  const { type = "Test", ipVersion = 6, recordBits = 24, builtAtMs = 1_767_225_600_000, metadata = {} } = made;
  const nodes: Node[] = [[null, null]];
  const data: Buffer[] = [];
  const places = new Map<string, number>();
  let size = 0;
  for (const [network, value] of Object.entries(networks)) {
    const bytes = encode(value);
    const known = places.get(bytes.toString("latin1"));
    if (known === undefined) {
      data.push(bytes);
      places.set(bytes.toString("latin1"), size);
    }
    insert(nodes, bitsOf(network, ipVersion), known ?? size);
    if (known === undefined) size += bytes.length;
  }
  const tree = nodes.map(([left, right]) =>
    encodeNode([recordOf(left, nodes.length), recordOf(right, nodes.length)], recordBits),
  );
  const described = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: Math.floor(builtAtMs / 1_000),
    database_type: type,
    description: { en: "Made for a test" },
    ip_version: ipVersion,
    languages: ["en"],
    node_count: nodes.length,
    record_size: recordBits,
    ...metadata,
  });
  return Buffer.concat([...tree, SEPARATOR, ...data, MARKER, described]);
};
