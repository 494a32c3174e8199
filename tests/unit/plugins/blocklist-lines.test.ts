// Lists with a network in each line, as others publish them.
import { expect, test } from "bun:test";
import { networkKey } from "../../../src/net/network-table.ts";
import { Pace } from "../../../src/pace.ts";
import { readLines } from "../../../src/plugins/blocklist/lines.ts";

const read = (text: string, max = 100) =>
  readLines(new TextEncoder().encode(text), { max, pace: new Pace() });
const keys = (...networks: string[]) => new Set(networks.map((text) => networkKey(text) as string));

test.each([
  ["a byte order mark", "\uFEFF1.2.3.4\n", ["1.2.3.4"]],
  ["lines of Windows, and none after the last", "1.2.3.4\r\n5.6.7.0/24", ["1.2.3.4", "5.6.7.0/24"]],
  [
    "the form of Spamhaus",
    "; Spamhaus DROP List\n1.10.16.0/20 ; SBL256894\n2001:db8::/32 ; SBL1\n",
    ["1.10.16.0/20", "2001:db8::/32"],
  ],
  ["the form of FireHOL", "#\n# firehol_level1\n#\n0.0.0.0/8\n1.0.1.1\n", ["0.0.0.0/8", "1.0.1.1"]],
  ["columns", "1.2.3.4\t17\n5.6.7.8,spam\n", ["1.2.3.4", "5.6.7.8"]],
  ["a network twice", "1.2.3.0/24\n1.2.3.9/24\n", ["1.2.3.0/24"]],
  ["only comments", "# nothing today\n", []],
  [
    "all addresses, which it ignores",
    "0.0.0.0/0\n1.2.3.4\n::/0\n5.6.7.8\n",
    ["1.2.3.4", "5.6.7.8"],
  ],
  [
    "some lines of another form",
    "first\n1.2.3.4\n5.6.7.8-5.6.7.9\n1.1.1.1\n",
    ["1.2.3.4", "1.1.1.1"],
  ],
])("reads %s", async (_, text, networks) => {
  expect(await read(text)).toEqual(keys(...networks));
});

test.each([
  ["nothing", "\n \n", "the list is empty"],
  ["a page", "<html>\n<body>\nSign in at 10.0.0.1\n</body>\n", "is no list"],
  ["JSON", '{"data":[{"ip":"1.2.3.4"}]}', "is no list"],
  ["only all addresses", "0.0.0.0/0\n", "is no list"],
])("refuses %s", async (_, text, why) => {
  await expect(read(text)).rejects.toThrow(why);
});

test("takes as many networks as the limit allows, and refuses one more", async () => {
  expect((await read("1.1.1.1\n1.1.1.2\n1.1.1.1\n", 2)).size).toBe(2);
  await expect(read("1.1.1.1\n1.1.1.2\n1.1.1.3\n", 2)).rejects.toThrow("max_entries");
});
