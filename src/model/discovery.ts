// Discovery: where applications are found that are not entered by hand; knows no container and no file.
import { type Static, Type as t } from "@sinclair/typebox";
import { decode } from "./decode.ts";
import { flag, group, listOf, nullable, oneOf } from "./fields.ts";
import { since } from "./resource.ts";
import { asHostName } from "./host-name.ts";

const suffix = asHostName(
  t.String({
    maxLength: 253,
    pattern:
      "^(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9])?$",
    errorMessage: "must be a domain, such as example.com, without *. and dot in front",
  }),
);

/** Languages of labels that are read, in this order. */
const labelDialects = ["sluice", "traefik", "caddy", "nginx-proxy"] as const;
export type LabelDialect = (typeof labelDialects)[number];

const schema = group(
  {
    docker: group(
      {
        endpoint: nullable(
          t.String({
            maxLength: 1024,
            pattern: "^(?:unix:///[^\\s]+|(?:tcp|https?)://[^\\s/?#@]+/?)$",
            errorMessage:
              "must be unix:///var/run/docker.sock, tcp://host:2375 or https://host:2376",
          }),
          "Docker's or Podman's API, of which the gateway only reads: `unix:///var/run/docker.sock`, `tcp://proxy:2375`, `https://host:2376`; null: off",
          {
            help: "Docker's or Podman's API, of which the gateway only reads. Better than the socket: a proxy for it that allows no writes. Empty: off",
            example: "unix:///var/run/docker.sock",
          },
        ),
        cert_path: nullable(
          t.String({ minLength: 1, maxLength: 4096 }),
          "Directory with ca.pem, cert.pem and key.pem for https://; null: the CAs of the system, no client certificate",
          {
            title: "Certificates",
            help: "Directory with ca.pem, cert.pem and key.pem for https://",
            example: "/etc/docker/certs",
          },
        ),
        labels: t.Array(oneOf(labelDialects, { description: "A language of labels" }), {
          default: ["sluice"],
          maxItems: labelDialects.length,
          uniqueItems: true,
          description:
            "Languages of labels: `sluice`, `traefik`, `caddy` (caddy-docker-proxy), `nginx-proxy` (VIRTUAL_HOST in the environment). The first one that a container uses counts",
          form: { help: "Languages of labels; the first one that a container uses counts" },
        }),
        expose_by_default: flag(
          false,
          "Serve containers without sluice.enable=true, if another label of theirs names a host",
          { help: "Also containers without sluice.enable=true whose labels name a host" },
        ),
        network: nullable(
          t.String({ minLength: 1, maxLength: 128 }),
          "Network through which containers are reached; null: one that the gateway shares with them, else their published port",
          {
            help: "Network of the containers. Empty: one that the gateway shares, else the published port",
          },
        ),
        published_address: nullable(
          asHostName(t.String({ minLength: 1, maxLength: 253, pattern: "^[A-Za-z0-9_.:-]+$" })),
          "Address of the published ports; other nodes of a fleet reach it, too; null: the host of the endpoint, and 127.0.0.1 with a socket",
          {
            help: "Address of published ports. Empty: the host of the endpoint, or this machine",
          },
        ),
        host_suffixes: listOf(
          suffix,
          "Domains whose names, and those below them, labels may use; empty: all names that are free",
          {
            maxItems: 100,
            form: {
              title: "Allowed domains",
              help: "Domains that labels may use, with all names below. Empty: all names that are free",
              example: "home.example.com",
            },
          },
        ),
        certificate_suffixes: listOf(
          suffix,
          "Domains for whose names certificates may be requested; empty: none",
          {
            maxItems: 100,
            form: {
              title: "Domains for certificates",
              help: "Domains for whose names certificates are requested. Empty: none",
              example: "home.example.com",
            },
          },
        ),
        reserved_hosts: since(
          8,
          listOf(
            suffix,
            "Domains that labels never use, nor names below them, such as names under a wildcard of your own; empty: none",
            {
              maxItems: 100,
              form: {
                title: "Reserved domains",
                help: "Domains that labels never use, nor names below them. Empty: none",
                example: "login.example.com",
              },
            },
          ),
        ),
        image_labels: since(
          8,
          flag(
            false,
            "Whether labels and variables count that came with the image of a container, and so from who published it",
            { help: "Also labels and variables that came with the image, from who published it" },
          ),
        ),
        host_ports: since(
          8,
          listOf(
            t.Integer({ minimum: 1, maximum: 65_535 }),
            "Ports of this machine that labels of containers in its own network (`network_mode: host`) may use; empty: none",
            {
              maxItems: 100,
              form: {
                title: "Ports of this machine",
                help: "Ports that labels of containers in the machine's own network may use. Empty: none",
                example: "8123",
              },
            },
          ),
        ),
        claim_seconds: since(
          8,
          t.Integer({
            default: 600,
            minimum: 0,
            maximum: 604_800,
            description:
              "How long a host or a name stays with a container that was removed, until another one may have it",
            form: {
              title: "Keep names",
              unit: "s",
              help: "How long a removed container keeps its hosts and names",
            },
          }),
        ),
        plugins: listOf(
          t.String({ minLength: 1, maxLength: 64 }),
          "Plugins that labels may use; empty: none. Never access-log and script, and never a secret",
          {
            maxItems: 100,
            form: {
              title: "Allowed plugins",
              help: "Plugins that labels may use. Empty: none",
              example: "compress",
            },
          },
        ),
      },
      "Containers of Docker or Podman",
      { title: "Docker" },
    ),
  },
  "Applications that are found instead of entered",
  { group: "discovery" },
);

/** A part of the settings, so only admins write it. With its whole default, which nodes of older versions do without. */
export const discovery = since(6, { ...schema, default: decode(schema, {}) });

export type Discovery = Static<typeof discovery>;
