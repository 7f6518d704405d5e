/** Lets the tests, which run in a process of their own, change the world: records in the DNS, blocklists, and the mails that were sent. */
import type { NameRecords } from "./zone.ts";
import type { World } from "./world.ts";

/** What a test asks for. */
export type ControlRequest =
  | { readonly kind: "publish"; readonly records: Readonly<Record<string, NameRecords>> }
  | { readonly kind: "list" | "delist"; readonly list: string; readonly target: string }
  | { readonly kind: "mails" };

const perform = ({ zone, mail }: World, request: ControlRequest): readonly string[] => {
  switch (request.kind) {
    case "publish":
      zone.publish(request.records);
      return [];
    case "list":
      zone.list(request.list, request.target);
      return [];
    case "delist":
      zone.delist(request.list, request.target);
      return [];
    case "mails":
      return mail.messages;
    default:
      return request satisfies never;
  }
};

/** Listens on loopback until it is stopped. */
export const startControl = (world: World): { readonly url: string; stop(): void } => {
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch: async (request) => Response.json(perform(world, (await request.json()) as ControlRequest)),
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) };
};
