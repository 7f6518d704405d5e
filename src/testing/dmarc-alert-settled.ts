import { expect } from "bun:test";
import { DMARC_EVENTS } from "../dmarc/alerts/alert-events.ts";
import type { DmarcAlertWorld } from "./dmarc-alert-world.ts";

const MANY = 2_000;

/** Gives a world a domain with two weeks of good mail behind it, of which nothing was told. */
export const settle = async (world: DmarcAlertWorld, more: Parameters<DmarcAlertWorld["add"]>[1] = {}) => {
  const { number } = world.add("example.com", more);
  world.reverse("192.0.2.1", "mail.example.com");
  for (let day = world.today - 14; day <= world.today; day++)
    world.report(number, day, "192.0.2.1 example.com/mail example.com -", { messages: MANY, aligned: MANY });
  await world.passes.run();
  expect(world.raised()).toEqual([]);
  return { world, number };
};

/** Every event has the data that the documentation says. */
export const expectDocumented = ({ events }: DmarcAlertWorld): void => {
  for (const { type, data } of events()) {
    const doc = DMARC_EVENTS.find((candidate) => candidate.type === type);
    expect([type, doc?.data.safeParse(data).error?.issues ?? []]).toEqual([type, []]);
  }
};
