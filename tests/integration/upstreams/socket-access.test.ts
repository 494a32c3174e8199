// Unix sockets lead past the network's own protection: only an admin points a target at one, whichever way it is written.
import { beforeAll, describe, expect, test } from "bun:test";
import { type Call, usePeople } from "../api/people.ts";

const people = usePeople();
let editor: Call;
beforeAll(async () => {
  const { email } = await people.create("ed", "editor");
  editor = await people.signIn(email);
});

const SOCKET = { host: "unix:/run/app.sock" };
const message = "only an admin may point a target at a unix socket";

describe("an editor is refused with 403, and the field is named", () => {
  test.each([
    [
      "POST /services",
      { name: "x", targets: [{ host: "10.0.0.1", port: 1 }, SOCKET] },
      "targets[1].host",
    ],
    ["POST /services?dry_run=1", { name: "x", targets: [SOCKET] }, "targets[0].host"],
    ["PUT /services/app", { name: "app", targets: [SOCKET] }, "targets[0].host"],
    ["PATCH /services/app", { targets: [SOCKET] }, "targets[0].host"],
    ["POST /targets", { service_id: "app", ...SOCKET }, "host"],
    ["POST /services/app/targets", SOCKET, "host"],
    ["PUT /targets/01a1fc40-e7a0-70e9-b0cd-2502aa065ff2", { service_id: "app", ...SOCKET }, "host"],
  ])("%s", async (line, body, field) => {
    await people.root("POST /services", { name: "app" });
    const { status, body: answer } = await editor(line, body);
    expect([status, answer.error]).toEqual([403, `${field}: ${message}`]);
  });

  test("PATCH and PUT of a target with another address, or another socket", async () => {
    const { body: service } = await people.root("POST /services", {
      name: "mixed",
      targets: [{ host: "10.0.0.1", port: 1 }, SOCKET],
    });
    const [plain, socket] = service.targets;
    const elsewhere = await editor(`PATCH /targets/${plain.id}`, { ...SOCKET, port: null });
    expect([elsewhere.status, elsewhere.body.error]).toEqual([403, `host: ${message}`]);
    const other = await editor(`PATCH /targets/${socket.id}`, { host: "unix:/run/docker.sock" });
    expect([other.status, other.body.error]).toEqual([403, `host: ${message}`]);
  });
});

test("an admin is allowed, and an editor may then change other fields", async () => {
  const { status, body: service } = await people.root("POST /services", {
    name: "socket",
    targets: [SOCKET],
  });
  expect([status, service.targets[0].port]).toEqual([200, null]);
  const [{ id }] = service.targets;
  expect((await editor(`PATCH /targets/${id}`, { weight: 7 })).body.weight).toBe(7);
  const read = (await editor("GET /services/socket")).body;
  expect((await editor("PUT /services/socket", { ...read, description: "d" })).status).toBe(200);
  const again = await editor("PATCH /services/socket", { targets: [{ ...SOCKET, weight: 9 }] });
  expect([again.status, again.body.targets[0].id, again.body.targets[0].weight]).toEqual([
    200,
    id,
    9,
  ]);
  expect((await editor(`DELETE /targets/${id}`)).status).toBe(200);
  const restored = await editor("POST /services/socket/targets", SOCKET);
  expect(restored.status).toBe(403);
});
