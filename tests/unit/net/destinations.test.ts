// Where the gateway may connect to: decisions about texts and addresses alone, without any connection.
import { describe, expect, test } from "bun:test";
import { destinationProblem } from "../../../src/net/destinations.ts";

const management = [{ address: "127.0.0.1", port: 9080 }];
const problem = (host: string, port = 80, permitted: readonly string[] = []) =>
  destinationProblem({ host, port }, { permitted, management });

describe("link-local and metadata addresses are refused:", () => {
  test.each([
    ["169.254.169.254", "AWS, Google, Azure and most others"],
    ["169.254.170.2", "credentials of containers"],
    ["169.254.0.1", "the whole link-local network"],
    ["fe80::1", "link-local of IPv6"],
    ["fe80::1%eth0", "with a zone"],
    ["febf::1", "the end of fe80::/10"],
    ["fd00:ec2::254", "AWS over IPv6"],
    ["fd00:ec2::23", "credentials of pods"],
    ["fd20:ce::254", "Google over IPv6"],
    ["100.100.100.200", "Alibaba"],
    ["192.0.0.192", "Oracle"],
    ["168.63.129.16", "Azure"],
    ["::ffff:169.254.169.254", "IPv4-mapped"],
    ["::ffff:a9fe:a9fe", "in hexadecimal"],
    ["0:0:0:0:0:ffff:a9fe:a9fe", "written out"],
    ["[::ffff:a9fe:a9fe]", "in brackets"],
    ["::ffff:100.100.100.200", "of Alibaba, IPv4-mapped"],
    ["::169.254.169.254", "IPv4-compatible"],
    ["::a9fe:a9fe", "in hexadecimal"],
    ["::ffff:0:a9fe:a9fe", "IPv4-translated, RFC 2765"],
    ["64:ff9b::a9fe:a9fe", "NAT64, RFC 6052"],
    ["64:ff9b::169.254.169.254", "with a quad"],
    ["64:ff9b::168.63.129.16", "of Azure"],
    ["64:ff9b:1::a9fe:a9fe", "local NAT64, RFC 8215, with 96 bits"],
    ["64:ff9b:1:a9fe:a9:fe00::", "with 48 bits"],
    ["64:ff9b:1:a9:fe:a9fe::", "with 56 bits"],
    ["64:ff9b:1:0:a9:fea9:fe00:0", "with 64 bits"],
    ["2002:a9fe:a9fe::", "6to4"],
    ["2002:a9fe:a9fe::1", "a host behind it"],
    ["2001:0:a9fe:a9fe::1", "the server of Teredo"],
    ["2001:0:1:2:3:4:5601:5601", "the client of Teredo, inverted"],
    ["fe80::5efe:10.0.0.1", "ISATAP of link-local"],
    ["2001:db8::5efe:169.254.169.254", "ISATAP of any prefix"],
    ["2001:db8::200:5efe:169.254.169.254", "with the universal bit"],
    ["2852039166", "decimal"],
    ["0xa9fea9fe", "hexadecimal"],
    ["0251.0376.0251.0376", "octal"],
    ["0xa9.0xfe.0xa9.0xfe", "hexadecimal parts"],
    ["169.254.43518", "three parts"],
    ["169.16689662", "two parts"],
    ["169.254.169.254.", "with a dot at the end"],
  ])("%s (%s)", (host) => {
    expect(problem(host)).toContain("settings.permitted_destinations");
  });
});

describe("the rest is allowed:", () => {
  test.each([
    ["127.0.0.1", 9091, "forward-auth on this machine"],
    ["localhost", 8080, "CrowdSec on this machine"],
    ["::1", 9091, "over IPv6"],
    ["10.0.0.5", 80, "a private network"],
    ["192.168.1.1", 80, "a router"],
    ["fd00::1", 80, "a unique local address"],
    ["172.17.0.1", 80, "a container"],
    ["100.64.0.1", 80, "carrier-grade NAT"],
    ["100.100.100.201", 80, "a neighbour of Alibaba's"],
    ["168.63.129.17", 80, "a neighbour of Azure's"],
    ["64:ff9b::808:808", 80, "NAT64 of a public address"],
    ["2002:808:808::1", 80, "6to4 of a public address"],
    ["2001:db8::a9fe:a9fe", 80, "bits that mean nothing in this network"],
    ["::2", 80, "no address of IPv4"],
    ["169.254.169.254.example.com", 80, "a name, decided once it is resolved"],
    ["metadata.google.internal", 80, "likewise"],
  ])("%s, port %d (%s)", (host, port) => {
    expect(problem(host, port)).toBe(null);
  });
});

describe("what an admin permits", () => {
  test.each([
    ["169.254.169.254", "169.254.169.254", null],
    ["169.254.10.7", "169.254.10.0/24", null],
    ["::ffff:169.254.10.7", "169.254.10.0/24", null],
    ["64:ff9b::a9fe:a07", "169.254.10.0/24", null],
    ["64:ff9b::a9fe:a07", "64:ff9b::/96", null],
    ["fe80::7%eth0", "fe80::7", null],
    ["169.254.11.7", "169.254.10.0/24", "is a link-local"],
    ["168.63.129.16", "169.254.0.0/16", "is a link-local"],
  ])("%s with %s", (host, network, says) => {
    const found = problem(host, 80, [network]);
    if (says === null) expect(found).toBe(null);
    else expect(found).toStartWith(says);
  });

  test("is never the management API", () => {
    const own = problem("127.0.0.1", 9080, ["0.0.0.0/0", "::/0"]);
    expect(own).toContain("the management API itself");
  });
});

test.each(["64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1", "0x7f000001", "2130706433", "127.1"])(
  "the management API is recognized at %s",
  (host) => {
    expect(problem(host, 9080)).toContain("the management API itself");
    expect(problem(host, 9091)).toBe(null);
  },
);
