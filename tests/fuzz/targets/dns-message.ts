// DNS messages with compressed names, whole and changed: valid ones round-trip, all others fail with the same error.
import fc from "fast-check";
import { nameBytes, readMessage, recordBytes } from "../../../src/acme/dns/dns-message.ts";
import { DnsError } from "../../../src/acme/dns/failure.ts";
import { edited, edits, type Edit } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Answer {
  readonly name: string;
  /** Whether the name is a pointer to the name of the question. */
  readonly points: boolean;
  readonly data: Uint8Array;
}

interface Input {
  readonly question: string;
  readonly answers: readonly Answer[];
  readonly changes: readonly Edit[];
}

const name = fc
  .array(fc.constantFrom("a", "Example", "_acme-challenge", "x".repeat(63)), { maxLength: 4 })
  .map((labels) => labels.join("."))
  .filter((text) => text.length < 250);

export const target = defineTarget<Input>({
  name: "dns-message",
  share: 80,
  inputs: fc.record({
    question: name,
    answers: fc.array(
      fc.record({ name, points: fc.boolean(), data: fc.uint8Array({ maxLength: 12 }) }),
      { maxLength: 4 },
    ),
    changes: edits(
      3,
      fc.oneof(fc.uint8Array({ maxLength: 3 }), fc.constant(Uint8Array.of(0xc0, 12))),
    ),
  }),
  check({ question, answers, changes }) {
    const bytes = edited(messageOf(question, answers), changes);
    const read = readOrNull(bytes);
    for (const record of [...(read?.answers ?? []), ...(read?.additional ?? [])]) {
      must(record.name.length <= 254, `a name of ${record.name.length} characters`);
      must(record.dataStart + record.data.length <= bytes.length, "data that is not there");
    }
    if (changes.length > 0) return;
    const found = read?.answers.map((record) => [record.name, record.type, [...record.data]]);
    const wanted = answers.map(({ name, points, data }) => [
      ...[(points ? question : name).toLowerCase(), 16, [...data]],
    ]);
    mustEqual(found, wanted, "answers");
  },
});

function readOrNull(bytes: Buffer) {
  try {
    return readMessage(bytes);
  } catch (error) {
    if (error instanceof DnsError) return null;
    throw error;
  }
}

function messageOf(question: string, answers: readonly Answer[]): Buffer {
  const records = answers.map(({ name, points, data }) => {
    const record = recordBytes({ name, type: 16, class: 1, ttl: 60, data });
    if (!points) return record;
    return Buffer.concat([Buffer.of(0xc0, 12), record.subarray(nameBytes(name).length)]);
  });
  const head = Buffer.of(0, 7, 0x81, 0x80, 0, 1, 0, answers.length, 0, 0, 0, 0);
  return Buffer.concat([head, nameBytes(question), Buffer.of(0, 16, 0, 1), ...records]);
}
