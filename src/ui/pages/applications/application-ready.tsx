// The result page of a new application: its URLs and the progress of its certificate; updates live.
import { Anchor, Box, Button, Group, Paper, Stack, Text, ThemeIcon } from "@mantine/core";
import { IconCheck, IconClock, IconExclamationMark, IconExternalLink } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useResource, useResourceList, useStatus } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { PageHead, Section } from "../../parts/page-layout.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { openUrl, redirectOf } from "./application-state.ts";
import { Settings } from "./application-summary.tsx";
import { type Probed, useProbe } from "./upstream-probe.ts";

export function ApplicationReady({ id }: { readonly id: string }) {
  const { data, error, refetch } = useResource("applications", id);
  if (data === undefined)
    return error === null ? <FormSkeleton /> : <ErrorPanel error={error} onRetry={refetch} />;
  return <Ready application={data.value} />;
}

function Ready({ application }: ApplicationProps) {
  const { id } = application;
  const probed = useProbe(application);
  return (
    <Box maw={760}>
      <PageHead
        title={application.name}
        text={
          probed.state === "fails"
            ? "Created, but its upstream does not respond."
            : "The application is created."
        }
        parent={{ href: pagePath("applications"), label: "Applications" }}
      />
      <Paper withBorder p={{ base: "md", sm: "xl" }} mb="md">
        <OpenButtons application={application} />
      </Paper>
      <Section title="Progress" text="Updates automatically.">
        <Progress application={application} probed={probed} />
      </Section>
      <Section title="Settings">
        <Settings application={application} />
      </Section>
      <Group>
        <Button component={Link} href={pagePath("applications", id)} variant="default">
          All settings
        </Button>
        <Button component={Link} href={pagePath("applications", "new")} variant="default">
          Another application
        </Button>
      </Group>
    </Box>
  );
}

interface ApplicationProps {
  readonly application: Read<"applications">;
}

/** A button for each name that can be opened. */
function OpenButtons({ application }: ApplicationProps) {
  const { data: listeners = [] } = useResourceList("listeners");
  const urls = application.domains
    .map((domain) => openUrl(domain, application.https.mode, listeners))
    .filter((url) => url !== null);
  if (urls.length === 0)
    return <Text>Open any name that matches {application.domains.join(", ")} in a browser.</Text>;
  return (
    <Stack gap="sm" align="center">
      {urls.map((url, index) => (
        <Button
          key={url}
          component="a"
          href={url}
          target="_blank"
          rel="noreferrer"
          size={index === 0 ? "md" : "sm"}
          variant={index === 0 ? "filled" : "default"}
          maw="100%"
          h="auto"
          py="xs"
          styles={{ label: { whiteSpace: "normal", overflowWrap: "anywhere", lineHeight: 1.35 } }}
          rightSection={<IconExternalLink size={16} aria-hidden="true" />}
        >
          Open {url}
        </Button>
      ))}
    </Stack>
  );
}

type Mark = "done" | "waits" | "trouble";

const marks = {
  done: { icon: IconCheck, color: "teal", word: "Done" },
  waits: { icon: IconClock, color: "blue", word: "In progress" },
  trouble: { icon: IconExclamationMark, color: "yellow", word: "Warning" },
} as const;

function Line({
  mark,
  title,
  children,
}: {
  readonly mark: Mark;
  readonly title: string;
  readonly children?: ReactNode;
}) {
  const { icon: Icon, color, word } = marks[mark];
  return (
    <Group gap="sm" wrap="nowrap" align="flex-start">
      <ThemeIcon variant="light" color={color} radius="xl" size={26} aria-hidden="true">
        <Icon size={16} />
      </ThemeIcon>
      <Stack gap={0} style={{ minWidth: 0, overflowWrap: "anywhere" }}>
        <Text fw={600} size="sm" pt={3}>
          <span className="visually-hidden">{word}: </span>
          {title}
        </Text>
        <Text size="sm" c="dimmed" component="div">
          {children}
        </Text>
      </Stack>
    </Group>
  );
}

function Progress({ application, probed }: ApplicationProps & { readonly probed: Probed }) {
  const { data: status } = useStatus();
  const workers = status?.workers ?? 1;
  const redirect = redirectOf(application);
  return (
    <Stack gap="sm" aria-live="polite">
      <Line mark="done" title={`Configured on ${workers} ${workers === 1 ? "worker" : "workers"}`}>
        {application.domains.join(", ")}{" "}
        {redirect === null
          ? `is forwarded to ${application.upstream ?? "its servers"}`
          : `redirects to ${redirect}`}
        .
      </Line>
      <UpstreamLine probed={probed} />
      <CertificateLine application={application} />
      <RedirectLine application={application} />
      {application.warnings.map((warning) => (
        <Line key={warning} mark="trouble" title="Warning">
          {warning}
        </Line>
      ))}
    </Stack>
  );
}

function UpstreamLine({ probed: { state, message } }: { readonly probed: Probed }) {
  if (state === "unknown") return null;
  const mark = { checking: "waits", responds: "done", fails: "trouble" } as const;
  const title = {
    checking: "Checking the upstream",
    responds: "The upstream responds",
    fails: "The upstream does not respond: clients get an error",
  };
  return (
    <Line mark={mark[state]} title={title[state]}>
      {message}
    </Line>
  );
}

function CertificateLine({ application }: ApplicationProps) {
  const { https, name } = application;
  const certificate = application.certificate as Schemas["Certificate"] | null;
  if (https.mode === "off" || certificate === null)
    return (
      <Line mark={https.mode === "off" ? "done" : "trouble"} title="No certificate">
        {https.mode === "off"
          ? "HTTPS is off: the application is served over plain HTTP."
          : `${name} has none.`}
      </Line>
    );
  const { status, source, last_error: error, next_attempt_at: next, not_after: end } = certificate;
  const link = (
    <Anchor
      component={Link}
      href={pagePath("certificates", certificate.id)}
      size="sm"
      underline="always"
    >
      Show the certificate
    </Anchor>
  );
  if (source === "self_signed")
    return (
      <Line mark="done" title="A self-signed certificate is in use">
        Encrypted, but browsers show a warning unless they trust it. {link}
      </Line>
    );
  if (source === "local_ca" && (status === "valid" || status === "renewing"))
    return (
      <Line mark="done" title="A certificate of the local CA is in use">
        Browsers show a warning until the device{" "}
        <Anchor component={Link} href={pagePath("local-ca")} size="sm" underline="always">
          trusts its root
        </Anchor>
        . {link}
      </Line>
    );
  if (status === "valid" || status === "renewing")
    return (
      <Line mark="done" title="The certificate is valid">
        Browsers trust it; it expires <RelativeTime at={end} /> and is renewed before. {link}
      </Line>
    );
  if (status === "failed" || status === "expired")
    return (
      <Line mark="trouble" title="Certificate issuance failed">
        {error} Next attempt: <RelativeTime at={next} never="after the next change" />. {link}
      </Line>
    );
  return (
    <Line mark="waits" title="Certificate requested">
      This takes some seconds. Until then, the gateway serves a self-signed one. {link}
    </Line>
  );
}

function RedirectLine({ application }: ApplicationProps) {
  const { https, domains } = application;
  if (https.mode === "off" || !https.redirect) return null;
  const routes = application.routes as readonly Schemas["Route"][];
  const isOn = routes.some((route) => route.https_redirect !== false);
  const certificate = application.certificate as Schemas["Certificate"] | null;
  if (!isOn && (certificate?.source === "self_signed" || certificate?.source === "local_ca"))
    return (
      <Line mark="done" title="No redirect to HTTPS">
        HTTP requests are not redirected while browsers do not trust the certificate.
      </Line>
    );
  return isOn ? (
    <Line mark="done" title="Redirects HTTP to HTTPS">
      http://{domains[0]} redirects to https://{domains[0]}.
    </Line>
  ) : (
    <Line mark="waits" title="Redirects HTTP to HTTPS as soon as the certificate is valid" />
  );
}
