/**
 * Takes units one after the other, and prints for each when it was had, in microseconds of the wall clock. A line "wants N"
 * of standard input changes the wants, and the end of it is the end.
 */
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Denied, Rate } from "./lease.js";

const { values } = parseArgs({
  options: {
    resource: { type: "string", default: "db-orders" }, // what to lease
    wants: { type: "string", default: "100" }, // units a second that the program could use
    servers: { type: "string", default: "127.0.0.1:15000" }, // HOST:PORT, and more of them after commas
    id: { type: "string", default: `typescript-${process.pid}` }, // name of this process, which no other has
    workers: { type: "string", default: "1" }, // loops that take units
    pause: { type: "string", default: "0" }, // instead of waiting, to come after so many milliseconds for what is there
    proto: { type: "string", default: "../../proto/doorman.proto" },
  },
});

function number(name: string, text: string): number {
  const number = Number(text);
  if (text.trim() !== "" && number >= 0 && number < Infinity) return number;
  console.error(`${name} ${JSON.stringify(text)}: wanted a number, 0 or more`);
  process.exit(2);
}

const microseconds = (): number => Date.now() * 1000;

async function work(rate: Rate): Promise<void> {
  for (;;) {
    try {
      await rate.acquire(1, 1000);
      console.log(`${microseconds()} had`);
    } catch (error) {
      if (isClosing) return;
      if (!(error instanceof Denied)) throw error;
      console.log(`${microseconds()} denied: ${error.message}`);
    }
  }
}

async function pick(rate: Rate, pause: number): Promise<void> {
  while (!isClosing) {
    await setTimeout(pause);
    while (rate.tryAcquire()) console.log(`${microseconds()} had`);
  }
}

let isClosing = false;
const servers = values.servers.split(",");
const rate = new Rate(values.id, values.resource, number("wants", values.wants), servers, values.proto);
const pause = number("pause", values.pause);
const begin = (): Promise<void> => (pause > 0 ? pick(rate, pause) : work(rate));
const workers = Array.from({ length: number("workers", values.workers) }, begin);
for await (const line of createInterface({ input: process.stdin })) {
  rate.setWants(number("wants", line.replace(/^wants /, "")));
}
isClosing = true;
await rate.close();
await Promise.all(workers);
