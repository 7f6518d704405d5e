/** Every `sh` block of the README and the guides works as it stands, against a service with a test key. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { command, kill, startServer } from "../harness/binary.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const GUIDES = join(ROOT, "src/service/docs/manual");
const BLOCK = /^( *)```sh\n(.*?)^\1```/gms;
/** What the blocks call: curl that fails for an error, jq for one member, the binary under its name. */
const PROLOGUE = `set -euo pipefail
curl() { command curl --fail-with-body --max-time 60 "$@"; }
jq() { "$BUN" -e 'let v = JSON.parse(await Bun.stdin.text()); for (const name of process.argv.at(-1).slice(1).split(".")) v = v[name]; console.log(v)' "$2"; }
postwarden() { "$BINARY" "$@"; }
`;

interface Surroundings {
  readonly binary: string;
  readonly folder: string;
  readonly claim: (what: string, isTrue: boolean, seen?: unknown) => void;
}

/** Runs the blocks of each file in their order, in one folder and with one service. No name is looked up outside this machine. */
export const claimGuides = async ({ binary, folder, claim }: Surroundings): Promise<void> => {
  const env = {
    POSTWARDEN_DATA_DIR: join(folder, "data"),
    POSTWARDEN_PORT: "0",
    POSTWARDEN_DNS_SERVERS: "127.0.0.1:9",
    POSTWARDEN_REPORT_HOST: "reports.example.com",
    POSTWARDEN_NOTIFY_SMTP_URL: "smtp://127.0.0.1:9",
    POSTWARDEN_NOTIFY_FROM: "postwarden@example.com",
  };
  const server = await startServer(env, { cwd: folder, binary });
  const made = ["keys", "create", "--account", "default", "--mode", "test"];
  const { key } = command<{ key: string }>(made, env, { cwd: folder, binary });
  const names = ["README.md", ...readdirSync(GUIDES).map((name) => join("src/service/docs/manual", name))].toSorted();
  for (const name of names) {
    const text = await Bun.file(join(ROOT, name)).text();
    for (const [at, [, , block = ""]] of [...text.matchAll(BLOCK)].entries()) {
      const script = PROLOGUE + block.replaceAll("http://127.0.0.1:8080", server.url);
      const tools = { PATH: process.env.PATH ?? "", BUN: process.execPath, BINARY: binary };
      const { exitCode, stdout, stderr } = Bun.spawnSync(["bash", "-c", script], {
        ...{ cwd: folder, stdin: "ignore", timeout: 90_000 },
        env: { ...env, ...tools, KEY: key },
      });
      claim(`${name}: block ${at + 1} works as it stands`, exitCode === 0, `${stdout}${stderr}`.slice(-600));
    }
  }
  await kill(server, "SIGTERM");
};
