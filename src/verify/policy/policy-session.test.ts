import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, test } from "bun:test";
import { createTestClock, settle } from "../../testing/clock.ts";
import { PolicySession } from "./policy-session.ts";

const QUESTION = "request=smtpd_access_policy\nprotocol_state=RCPT\nrecipient=a@x.example\n\n";

/** A connection that the test plays. */
class PlayedSocket extends EventEmitter {
  writableNeedDrain = false;
  isHeld = false;
  readonly written: string[] = [];

  write(text: string): void {
    this.written.push(text);
  }

  pause(): void {
    this.isHeld = true;
  }

  resume(): void {
    this.isHeld = false;
  }

  isPaused(): boolean {
    return this.isHeld;
  }

  end(): void {
    this.emit("close");
  }

  destroy(): void {
    this.emit("close");
  }
}

const start = () => {
  const clock = createTestClock();
  const socket = new PlayedSocket();
  const turns: Array<() => void> = [];
  const closed: Array<string | null> = [];
  new PolicySession(socket as unknown as Socket, {
    clock,
    answer: () => "DUNNO",
    turn: () => new Promise((resolve) => void turns.push(resolve)),
    onClosed: (problem) => void closed.push(problem),
  });
  const send = (text: string) => socket.emit("data", Buffer.from(text));
  return { clock, socket, turns, closed, send };
};

test("a client that sends many questions at once is read again when they are answered", async () => {
  const { socket, turns, send } = start();
  send(QUESTION.repeat(1_000));
  expect([socket.isPaused(), socket.written.length]).toEqual([true, 1]);
  for (let n = 0; n < 1_000; n++) {
    turns.shift()?.();
    await Promise.resolve();
    await Promise.resolve();
  }
  await settle();
  expect([socket.isPaused(), socket.written.length]).toEqual([false, 1_000]);
});

test("a client that does not read its answers gets no more of them, and is closed after ten seconds", async () => {
  const { clock, socket, closed, send } = start();
  socket.writableNeedDrain = true;
  send(QUESTION);
  expect(socket.written).toEqual([]);
  await clock.advance(9_999);
  socket.writableNeedDrain = false;
  socket.emit("drain");
  expect(socket.written).toHaveLength(1);
  socket.writableNeedDrain = true;
  send(QUESTION);
  await clock.advance(10_000);
  expect([socket.written.length, closed]).toEqual([1, ["timeout"]]);
});

test("a question that begins after an idle time has ten seconds", async () => {
  const { clock, closed, send } = start();
  send(QUESTION);
  await clock.advance(5 * 60_000);
  send("request=smtpd");
  await clock.advance(9_999);
  expect(closed).toEqual([]);
  await clock.advance(1);
  expect(closed).toEqual(["timeout"]);
});
