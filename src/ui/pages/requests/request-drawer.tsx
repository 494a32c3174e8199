// One request in full: where it went, how long each part took, what was decided and why; knows no list.
import { Anchor, Button, Code, CopyButton, Drawer, Group, Stack, Text } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useRead, useResourceList } from "../../api/queries.ts";
import { pagePath } from "../../page-path.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { inBytes } from "../../parts/quantities.ts";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { PhaseBar } from "./phase-bar.tsx";
import { toCurl } from "./request-curl.ts";
import { explainReason } from "./request-reasons.ts";
import { RequestStatus } from "./request-status.tsx";
import type { RequestRow } from "./request-tail.ts";

interface Props {
  /** Empty: closed. */
  readonly id: string;
  /** The request, if the page has it. */
  readonly known: RequestRow | null;
  readonly onClose: () => void;
}

export function RequestDrawer({ id, known, onClose }: Props) {
  const read = useRead<RequestRow>(`requests/${encodeURIComponent(id)}`, {
    enabled: id !== "" && known === null,
  });
  const request = known ?? read.data?.value ?? null;
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
      ) : read.isError ? (
        <ErrorPanel error={read.error} title="It cannot be shown" />
      ) : (
        <FormSkeleton />
      )}
    </Drawer>
  );
}

function Details({ request }: { readonly request: RequestRow }) {
  const { kind, method, host, path, scheme } = request;
  const curl = toCurl(request);
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
      <Section title="Why it ended so">
        <Decisions request={request} />
      </Section>
      <Section title="Time">
        <PhaseBar request={request} />
      </Section>
      <Section title="Way">
        <Way request={request} />
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
        Without body and other header fields, which are not kept
        {isMasked ? "; fill in the secrets where *** stands" : ""}.
      </Text>
    </Stack>
  );
}

function Decisions({ request: { reasons, attempts, status } }: { readonly request: RequestRow }) {
  if (reasons.length === 0)
    return (
      <Text size="sm">
        {attempts > 0 || status === null
          ? "Nothing special: it was passed on and answered."
          : "Nothing special: the gateway answered it itself."}
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
              {plugin === null ? "noted by the gateway" : `decided by the plugin ${plugin}`}
            </Text>
            <Only name="q" value={word} />
          </Group>
        </li>
      ))}
    </Stack>
  );
}

function Way({ request }: { readonly request: RequestRow }) {
  const { kind, route, service, target, attempts } = request;
  const page = kind === "stream" ? "stream-routes" : "routes";
  return (
    <Stack gap={6}>
      <Fact label="Route">
        <MetLink page={page} met={route} none="none took it" />{" "}
        {route !== null && <Only name="route" value={route.id} />}
      </Fact>
      <Fact label="Service">
        <MetLink page="services" met={service} none="none" />
      </Fact>
      <Fact label="Target">
        {target === null ? (
          "none was asked"
        ) : (
          <span className="mono">{target.address ?? "one that is gone"}</span>
        )}
      </Fact>
      {kind === "http" && (
        <Fact label="Attempts">{attempts > 1 ? `${attempts}, the last one counts` : attempts}</Fact>
      )}
      <Fact label="Bytes">
        {inBytes(request.bytes_in)} from the client, {inBytes(request.bytes_out)} to it
      </Fact>
    </Stack>
  );
}

function Client({ request }: { readonly request: RequestRow }) {
  return (
    <Stack gap={6}>
      <Fact label="Address">
        <span className="mono">{request.client}</span>{" "}
        <Only name="address" value={request.client} />
      </Fact>
      <Fact label="Consumer">
        <ConsumerLink name={request.consumer} />
      </Fact>
      {request.kind === "http" && (
        <Fact label="User agent">{request.user_agent ?? "says nothing"}</Fact>
      )}
      {request.tls_version !== null && <Fact label="TLS">{request.tls_version}</Fact>}
      {request.http_version !== null && (
        <Fact label="HTTP">
          {request.http_version === "1" ? "1.1 or 1.0" : request.http_version}
        </Fact>
      )}
      <Fact label="Began">
        <RelativeTime at={request.time} />{" "}
        <Text span size="xs" c="dimmed" className="mono">
          {request.time}
        </Text>
      </Fact>
      <Fact label="Id">
        <span className="mono">{request.id}</span>
      </Fact>
      {request.truncated.length > 0 && (
        <Fact label="Cut, too long">{request.truncated.join(", ")}</Fact>
      )}
    </Stack>
  );
}

/** Leads to the requests that have the same. */
function Only({ name, value }: { readonly name: string; readonly value: string }) {
  const query = new URLSearchParams({ [name]: value });
  return (
    <Anchor component={Link} href={`${pagePath("requests")}?${query}`} size="xs">
      Show only these
    </Anchor>
  );
}

interface MetLinkProps {
  readonly page: string;
  readonly met: { readonly id: string; readonly name: string | null } | null;
  readonly none: ReactNode;
}

function MetLink({ page, met, none }: MetLinkProps) {
  if (met === null) return none;
  if (met.name === null) return "one that is gone or has no name";
  return (
    <Anchor component={Link} href={pagePath(page, met.id)} size="sm">
      {met.name}
    </Anchor>
  );
}

/** Requests say the name only. */
function ConsumerLink({ name }: { readonly name: string | null }) {
  const { data = [] } = useResourceList("consumers");
  if (name === null) return "not known";
  const found = data.find(({ username }) => username === name);
  if (found === undefined) return name;
  return <MetLink page="consumers" met={{ id: found.id, name }} none={name} />;
}
