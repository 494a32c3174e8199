// Scripted Amazon Route 53; checks signatures as its documentation says, independently of our client.
import { createHash, createHmac } from "node:crypto";
import { SECRET } from "./plays.ts";
import type { Answer, Asked, Play, World } from "./scripted-api.ts";

export const KEY_ID = "AKIAIOSFODNN7EXAMPLE";

const digest = (text: string) => createHash("sha256").update(text).digest("hex");
const keyed = (key: string | Buffer, text: string) =>
  createHmac("sha256", key).update(text).digest();

function isSigned({ headers, method, full, text }: Asked): boolean {
  const [, credential = "", signed = "", signature = ""] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      headers.get("authorization") ?? "",
    ) ?? [];
  const [key, day = "", region = "", service = "", end = ""] = credential.split("/");
  const time = headers.get("x-amz-date") ?? "";
  const isNow =
    Math.abs(
      Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5")) - Date.now(),
    ) < 300_000;
  if (key !== KEY_ID || !time.startsWith(day) || !isNow || !signed.includes("host")) return false;
  const url = new URL(full);
  const query = url.search
    .slice(1)
    .split("&")
    .filter((part) => part !== "")
    .map((part) => (part.includes("=") ? part : `${part}=`))
    .sort()
    .join("&");
  const lines = signed
    .split(";")
    .map((name) => `${name}:${name === "host" ? url.host : headers.get(name)}`);
  const canonical = [method, url.pathname, query, ...lines, "", signed, digest(text)].join("\n");
  const scope = [day, region, service, end].join("/");
  const chain = [day, region, service, end].reduce<Buffer>(
    (sum, part) => keyed(sum, part),
    Buffer.from(`AWS4${SECRET}`),
  );
  const expected = keyed(
    chain,
    ["AWS4-HMAC-SHA256", time, scope, digest(canonical)].join("\n"),
  ).toString("hex");
  return region === "us-east-1" && service === "route53" && expected === signature;
}

const xml = (body: string, status = 200): Answer => ({
  status,
  body: `<?xml version="1.0"?>\n${body}`,
  headers: { "content-type": "text/xml" },
});

const error = (status: number, code: string, message: string) =>
  xml(
    `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
    status,
  );

const zoneXml = (name: string, isPrivate = false) =>
  `<HostedZone><Id>/hostedzone/Z-${isPrivate ? "private-" : ""}${name}</Id><Name>${name}.</Name><Config><PrivateZone>${isPrivate}</PrivateZone></Config></HostedZone>`;

const plainText = (text: string) =>
  text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));

const valuesIn = (text: string) =>
  [...text.matchAll(/<Value>([^<]*)<\/Value>/g)].map(([, value = ""]) => plainText(value));

function change(text: string, zone: string, world: World): Answer {
  const copy = [...world.records];
  for (const [, action = "", set = ""] of text.matchAll(
    /<Change><Action>(\w+)<\/Action>(.*?)<\/Change>/gs,
  )) {
    const name = /<Name>([^<]*)\.<\/Name>/.exec(set)?.[1] ?? "";
    const values = valuesIn(set);
    const there = world.records.filter((record) => record.name === name).map(({ value }) => value);
    if (action === "DELETE" && !Bun.deepEquals(there, values)) {
      world.records = copy;
      return error(400, "InvalidChangeBatch", "values do not match");
    }
    if (action === "CREATE" && there.length > 0) {
      world.records = copy;
      return error(400, "InvalidChangeBatch", "it already exists");
    }
    world.records = world.records.filter((record) => record.name !== name);
    if (action === "CREATE")
      world.records.push(...values.map((value) => ({ id: world.next(), zone, name, value })));
  }
  return xml("<R><ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status></ChangeInfo></R>");
}

export const route53: Play = {
  base: "https://route53.amazonaws.com/2013-04-01",
  admit: (asked) =>
    isSigned(asked)
      ? null
      : error(403, "SignatureDoesNotMatch", "The request signature we calculated does not match"),
  answer({ method, path, query, text }, world) {
    // A private zone of the same name comes first and must not be chosen.
    const zones = world.zones.flatMap((name) => zoneXml(name, true) + zoneXml(name));
    if (path === "/hostedzonesbyname") {
      const from = query.get("dnsname")?.replace(/\.$/, "");
      const found = world.zones
        .filter((name) => name === from)
        .map((name) => zoneXml(name, true) + zoneXml(name));
      // What comes after it in the order of names.
      return xml(`<R><HostedZones>${found.join("")}${zoneXml("zzz.example")}</HostedZones></R>`);
    }
    if (path === "/hostedzone")
      return xml(
        `<R><HostedZones>${zones.join("")}</HostedZones><IsTruncated>false</IsTruncated></R>`,
      );
    if (path.startsWith("/change/"))
      return xml("<R><ChangeInfo><Id>/change/C1</Id><Status>INSYNC</Status></ChangeInfo></R>");
    const zone = /^\/hostedzone\/Z-([^/]+)\/rrset/.exec(path)?.[1] ?? "";
    if (!world.zones.includes(zone)) return error(404, "NoSuchHostedZone", "No hosted zone found");
    if (method === "POST") return change(text, zone, world);
    const name = query.get("name")?.replace(/\.$/, "") ?? "";
    const values = world.records.filter((record) => record.name === name).map(({ value }) => value);
    // It returns the next record set when the name has none.
    const [shown, list] = values.length === 0 ? ["zzz.example.com", ['"other"']] : [name, values];
    const records = list.map((value) => `<ResourceRecord><Value>${value}</Value></ResourceRecord>`);
    return xml(
      `<R><ResourceRecordSets><ResourceRecordSet><Name>${shown}.</Name><Type>TXT</Type><TTL>60</TTL><ResourceRecords>${records.join("")}</ResourceRecords></ResourceRecordSet></ResourceRecordSets></R>`,
    );
  },
};
