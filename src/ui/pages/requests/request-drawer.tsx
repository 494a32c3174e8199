// One request in full: route and target, timing, outcome and reasons; knows no list.
import { Anchor, Button, Code, CopyButton, Drawer, Group, Stack, Text } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useRead, useResourceList } from "../../api/queries.ts";
import { pagePath } from "../../page-path.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { useNodeQuery } from "../../parts/node-choice.tsx";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { inBytes } from "../../parts/quantities.ts";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { PhaseBar } from "./phase-bar.tsx";
import { unusualPort } from "../listeners/listener-port.ts";
import { toCurl } from "./request-curl.ts";
import { explainReason } from "./request-reasons.ts";
import { RequestStatus } from "./request-status.tsx";
import { type RequestList, type RequestRow, rowsOf } from "./request-tail.ts";

interface Props {
  /** Empty: closed. */
  readonly id: string;
  /** The request, if the page has loaded it. */
  readonly known: RequestRow | null;
  readonly onClose: () => void;
}

export function RequestDrawer({ id, known, onClose }: Props) {
  const enabled = id !== "" && known === null;
  const nodes = useNodeQuery();
  const isFleet = nodes.node !== undefined;
  const read = useRead<RequestRow>(`requests/${encodeURIComponent(id)}`, {
    enabled: enabled && !isFleet,
  });
  // Another node may have it, and only the list reads from others.
  const search = useRead<RequestList>("requests", {
    query: { ...nodes, q: id, limit: 1 },
    enabled: enabled && isFleet,
  });
  const [found] = search.data === undefined ? [] : rowsOf(search.data.value);
  const request = known ?? read.data?.value ?? found ?? null;
  return (
    <Drawer
      opened={id !== ""}
      onClose={onClose}
      position="right"
      size="lg"
      title={request?.kind === "stream" ? "Connection" : "Request"}
    >
      {request !== null ? (
        <Details request={request} />
      ) : read.isError || search.isError ? (
        <ErrorPanel error={read.error ?? search.error} title="The request cannot be loaded" />
      ) : search.isSuccess ? (
        <Text size="sm">The request is no longer stored.</Text>
      ) : (
        <FormSkeleton />
      )}
    </Drawer>
  );
}

function Details({ request }: { readonly request: RequestRow }) {
  const { kind, method, host, path, scheme } = request;
  const { data: listeners = [] } = useResourceList("listeners");
  const curl = toCurl(request, unusualPort(scheme === "https" ? "https" : "http", listeners));
  return (
    <Stack gap={0}>
      <Stack gap={6} mb="md">
        <Group gap="xs" wrap="nowrap" align="flex-start">
          <RequestStatus request={request} />
          <Text className="mono" style={{ overflowWrap: "anywhere" }}>
            {kind === "stream" ? `${scheme} connection` : `${method} ${scheme}://${host}${path}`}
          </Text>
        </Group>
        {curl !== null && <CopyCurl command={curl} request={request} />}
      </Stack>
      <Section title="Outcome">
        <Decisions request={request} />
      </Section>
      {(request.cache ?? null) !== null && (
        <Section title="Cache">
          <CacheOutcome cache={request.cache} />
        </Section>
      )}
      {(request.grpc ?? null) !== null && (
        <Section title="gRPC">
          <GrpcStatus grpc={request.grpc} />
        </Section>
      )}
      <Section title="Timing">
        <PhaseBar request={request} />
      </Section>
      <Section title="Path through the gateway">
        <RequestPath request={request} />
      </Section>
      <Section title="Client">
        <Client request={request} />
      </Section>
    </Stack>
  );
}

function CopyCurl({
  command,
  request,
}: {
  readonly command: string;
  readonly request: RequestRow;
}) {
  const isMasked = request.path?.includes("=***") === true;
  return (
    <Stack gap={4} align="flex-start">
      <CopyButton value={command}>
        {({ copied, copy }) => (
          <Button
            size="xs"
            variant="default"
            onClick={copy}
            leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
          >
            {copied ? "Copied" : "Copy as curl"}
          </Button>
        )}
      </CopyButton>
      <Text size="xs" c="dimmed">
        Without body and other headers, which are not stored
        {isMasked ? "; replace *** with the secrets" : ""}.
      </Text>
    </Stack>
  );
}

function Decisions({ request: { reasons, attempts, status } }: { readonly request: RequestRow }) {
  if (reasons.length === 0)
    return (
      <Text size="sm">
        {attempts > 0 || status === null
          ? "Forwarded; the target responded."
          : "The gateway responded itself."}
      </Text>
    );
  return (
    <Stack gap="xs" component="ul" m={0} p={0} style={{ listStyle: "none" }}>
      {reasons.map(explainReason).map(({ word, text, plugin }) => (
        <li key={word}>
          {text !== null && <Text size="sm">{text}</Text>}
          <Group gap={6}>
            <Code>{word}</Code>
            <Text size="xs" c="dimmed">
              {plugin === null ? "reported by the gateway" : `decided by the plugin ${plugin}`}
            </Text>
            <FilterLink name="q" value={word} />
          </Group>
        </li>
      ))}
    </Stack>
  );
}

function CacheOutcome({ cache }: Pick<RequestRow, "cache">) {
  if (cache === null) return null;
  const { status, reason, detail } = cache;
  return (
    <Stack gap={6}>
      <Text size="sm">{detail}</Text>
      {[status, ...(reason === null ? [] : [reason])].map((word) => (
        <Group key={word} gap={6}>
          <Code>{word}</Code>
          <FilterLink name="cache" value={word} />
        </Group>
      ))}
    </Stack>
  );
}

function GrpcStatus({ grpc }: Pick<RequestRow, "grpc">) {
  if (grpc === null) return null;
  return (
    <Group gap={6}>
      <Code>{grpc.name}</Code>
      <Text size="sm">status {grpc.status}</Text>
      <FilterLink name="grpc" value={grpc.name} />
    </Group>
  );
}

function RequestPath({ request }: { readonly request: RequestRow }) {
  const { kind, route, service, target, attempts } = request;
  const page = kind === "stream" ? "stream-routes" : "routes";
  return (
    <Stack gap={6}>
      <Fact label="Route">
        <ObjectLink page={page} target={route} none="no route matched" />{" "}
        {route !== null && <FilterLink name="route" value={route.id} />}
      </Fact>
      <Fact label="Service">
        <ObjectLink page="services" target={service} none="none" />
      </Fact>
      <Fact label="Target">
        {target === null ? (
          "none selected"
        ) : (
          <span className="mono">{target.address ?? "deleted"}</span>
        )}
      </Fact>
      {kind === "http" && (
        <Fact label="Attempts">{attempts > 1 ? `${attempts}, the last one counts` : attempts}</Fact>
      )}
      <Fact label="Bytes">
        {inBytes(request.bytes_in)} received, {inBytes(request.bytes_out)} sent
      </Fact>
    </Stack>
  );
}

function Client({ request }: { readonly request: RequestRow }) {
  return (
    <Stack gap={6}>
      <Fact label="Address">
        <span className="mono">{request.client}</span>{" "}
        <FilterLink name="address" value={request.client} />
      </Fact>
      <Fact label="Consumer">
        <ConsumerLink name={request.consumer} />
      </Fact>
      {request.kind === "http" && <Fact label="User agent">{request.user_agent ?? "none"}</Fact>}
      {request.tls_version !== null && <Fact label="TLS">{request.tls_version}</Fact>}
      {request.http_version !== null && (
        <Fact label="HTTP">
          {request.http_version === "1" ? "1.1 or 1.0" : request.http_version}
        </Fact>
      )}
      <Fact label="Started">
        <RelativeTime at={request.time} />{" "}
        <Text span size="xs" c="dimmed" className="mono" style={{ whiteSpace: "nowrap" }}>
          {request.time}
        </Text>
      </Fact>
      {request.node !== undefined && <Fact label="Node">{request.node}</Fact>}
      <Fact label="ID">
        <span className="mono">{request.id}</span>
      </Fact>
      {request.truncated.length > 0 && (
        <Fact label="Truncated">{request.truncated.join(", ")}</Fact>
      )}
    </Stack>
  );
}

/** Filters the list by this value. */
function FilterLink({ name, value }: { readonly name: string; readonly value: string }) {
  const query = new URLSearchParams({ [name]: value });
  return (
    <Anchor component={Link} href={`${pagePath("requests")}?${query}`} size="xs">
      Filter by this
    </Anchor>
  );
}

interface ObjectLinkProps {
  readonly page: string;
  readonly target: { readonly id: string; readonly name: string | null } | null;
  readonly none: ReactNode;
}

function ObjectLink({ page, target, none }: ObjectLinkProps) {
  if (target === null) return none;
  if (target.name === null) return "deleted or without a name";
  return (
    <Anchor component={Link} href={pagePath(page, target.id)} size="sm">
      {target.name}
    </Anchor>
  );
}

/** A request stores only the name. */
function ConsumerLink({ name }: { readonly name: string | null }) {
  const { data = [] } = useResourceList("consumers");
  if (name === null) return "none";
  const found = data.find(({ username }) => username === name);
  if (found === undefined) return name;
  return <ObjectLink page="consumers" target={{ id: found.id, name }} none={name} />;
}
