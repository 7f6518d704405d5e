import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { selfSignedCertificate } from "../../src/foundation/net/self-signed-file.ts";
import type { Subject } from "./ask.ts";
import { EXITS, PROXIED_HTTP } from "./hosts.ts";
import { type Claim, claim } from "./claims.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";

const FIXTURES = resolve(import.meta.dir, "../../fixtures/proxy");
const NAME = "postwarden.example.com";
const SERVICE = "proxied";
const [NGINX_PORT, CADDY_PORT] = [8443, 8444] as const;
const CLIENT = EXITS.unwelcome;
const ROWS = 100_000;
/** With the address, 50 MB for all rows. */
const CELL_CHARACTERS = 475;

interface Proxy {
  readonly name: string;
  readonly port: number;
}

interface Bench {
  readonly supervisor: Supervisor;
  readonly folder: string;
  readonly key: string;
}

/** The configuration with the places of the lab; throws when a text to replace is not in it. */
const adapted = (file: string, places: Readonly<Record<string, string>>): string =>
  Object.entries(places).reduce(
    (text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`${file} has no "${from}"`);
      return text.replaceAll(from, to);
    },
    readFileSync(join(FIXTURES, file), "utf8"),
  );

const startNginx = ({ supervisor, folder }: Bench, program: string): void => {
  const site = adapted("nginx.conf", {
    "listen 443": `listen ${PROXIED_HTTP.ip}:${NGINX_PORT}`,
    "server 127.0.0.1:8080": `server ${PROXIED_HTTP.ip}:${PROXIED_HTTP.port}`,
    [`/etc/letsencrypt/live/${NAME}/fullchain.pem`]: join(folder, "cert.pem"),
    [`/etc/letsencrypt/live/${NAME}/privkey.pem`]: join(folder, "key.pem"),
  });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  const main = `user root; daemon off; pid ${folder}/nginx.pid; error_log stderr; events {}
http { access_log off; ${temporary.join(" ")}
${site} }`;
  writeFileSync(join(folder, "nginx.conf"), main);
  supervisor.start({ name: "nginx", argv: [program, "-c", join(folder, "nginx.conf")] });
};

const startCaddy = ({ supervisor, folder }: Bench, program: string): void => {
  const site = adapted("Caddyfile", {
    [`${NAME} {`]: `https://${NAME}:${CADDY_PORT} {\n\tbind ${PROXIED_HTTP.ip}\n\ttls ${folder}/cert.pem ${folder}/key.pem`,
    "reverse_proxy 127.0.0.1:8080": `reverse_proxy ${PROXIED_HTTP.ip}:${PROXIED_HTTP.port}`,
  });
  writeFileSync(join(folder, "Caddyfile"), `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  supervisor.start({
    name: "caddy",
    argv: [program, "run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"],
    env,
  });
};

/** Requests through a proxy from another address; the body, then the status on a line of its own. */
const curl = ({ supervisor, folder, key }: Bench, { port }: Proxy, path: string, args: readonly string[]) =>
  supervisor.run([
    ...["curl", "-sS", "--max-time", "300", "--cacert", join(folder, "cert.pem"), "--interface", CLIENT],
    ...["--resolve", `${NAME}:${port}:${PROXIED_HTTP.ip}`, "-w", "\n%{http_code}"],
    ...["-H", `Authorization: Bearer ${key}`, ...args, `https://${NAME}:${port}${path}`],
  ]);

const found = (text: string, pattern: RegExp): string =>
  `${text.trim().split("\n").at(-1)} ${pattern.exec(text)?.[1] ?? text.slice(0, 200)}`;

const clientsOf = (log: string, path: string): string => {
  const lines = log.split("\n").filter((line) => line.includes(`"path":"${path}"`));
  return [...new Set(lines.map((line) => /"client":"([^"]+)"/.exec(line)?.[1] ?? "none"))].join(" ");
};

const claimsOf = async (bench: Bench, proxy: Proxy, directory: string): Promise<readonly Claim[]> => {
  const cell = (what: string, expected: string, got: string): Claim =>
    claim("proxies", `${proxy.name}: ${what}`, expected, got);
  const path = "/v1/email-verifications";
  const bulk = "/v1/bulk-verifications";
  const forged = ["-H", "X-Forwarded-For: 203.0.114.9"];
  const checking = curl(bench, proxy, path, [...forged, "-d", '{"email":"mailbox_exists@any.example"}']);
  const polling = curl(bench, proxy, `${path}?timeout=90`, ["-d", '{"email":"pending@any.example"}']);
  const upload = join(bench.folder, "list.csv");
  const csv = ["-H", "Content-Type: text/csv", "-H", "Expect:", "--data-binary", `@${upload}`];
  const list = await curl(bench, proxy, `${bulk}?column=email`, csv);
  const id = /"id":"([^"]+)"/.exec(list)?.[1] ?? "";
  await curl(bench, proxy, `${bulk}/${id}/cancel`, ["-X", "POST"]);
  const log = () => readFileSync(join(directory, `${SERVICE}.log`), "utf8");
  return [
    cell("a check", "200 mailbox_exists", found(await checking, /"sub_status":"(\w+)"/)),
    cell("a list of 50 MB", `202 ${ROWS}`, found(list, /"rows":\{"total":(\d+)/)),
    cell("a request waits 8 s for its result", "200 completed", found(await polling, /"status":"(\w+)"/)),
    cell("the log names the client, not a forged one", CLIENT, clientsOf(log(), path)),
  ];
};

/** nginx and Caddy with the configurations of `fixtures/proxy` in front of the executable. */
export const runProxies = async (
  supervisor: Supervisor,
  subject: Subject,
  unpacked: string,
): Promise<readonly Claim[]> => {
  const folder = join(subject.directory, "proxies");
  mkdirSync(folder);
  const { cert, key: certificateKey } = selfSignedCertificate(NAME, Date.now());
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), certificateKey);
  const row = (n: number): string =>
    `user${n.toString().padStart(6, "0")}@list.example,${"x".repeat(CELL_CHARACTERS)}\n`;
  writeFileSync(join(folder, "list.csv"), `email,note\n${Array.from({ length: ROWS }, (_, n) => row(n)).join("")}`);

  const environment = {
    ...subject.environment,
    POSTWARDEN_LOG_LEVEL: "debug",
    // A connection within this machine comes from the address that it goes to.
    POSTWARDEN_TRUSTED_PROXIES: `${PROXIED_HTTP.ip}/32`,
  };
  await startService(supervisor, { ...subject, environment }, { name: SERVICE, ...PROXIED_HTTP });
  const env = { ...environment, POSTWARDEN_DATA_DIR: join(subject.directory, `${SERVICE}-data`) };
  const made = await supervisor.run(
    [subject.binary, "keys", "create", "--account", "lab", "--mode", "test", "--json"],
    { env },
  );
  const key = /"key":"([^"]+)"/.exec(made)?.[1] ?? "";
  const bench = { supervisor, folder, key };
  startNginx(bench, join(unpacked, "nginx/usr/sbin/nginx"));
  startCaddy(bench, join(unpacked, "caddy/usr/bin/caddy"));
  const proxies = [
    { name: "nginx", port: NGINX_PORT },
    { name: "caddy", port: CADDY_PORT },
  ];
  for (const { name, port } of proxies) await supervisor.waitForPort(name, PROXIED_HTTP.ip, port);
  const bodies = join(folder, "client_body");
  const before = statSync(bodies).mtimeMs;
  const cells: Claim[] = [];
  for (const proxy of proxies) cells.push(...(await claimsOf(bench, proxy, subject.directory)));
  const stored = statSync(bodies).mtimeMs === before ? "no" : "yes";
  return [...cells, claim("proxies", "nginx stores an upload before it is passed on", "no", stored)];
};
