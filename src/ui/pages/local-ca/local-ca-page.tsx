// The local CA: its root for download, how each platform trusts it, and its replacement.
import { Button, Code, Group, List, Stack, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconDownload } from "@tabler/icons-react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useRead } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Can, Fact, PageHead, Section } from "../../parts/page-layout.tsx";
import { QrCode } from "../../parts/qr-code.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { platforms } from "./platforms.ts";

const PATH = "local-ca";

type Root = NonNullable<Schemas["LocalCa"]["root"]>;

export default function LocalCaPage() {
  const { data, error, isPending, refetch } = useRead<Schemas["LocalCa"]>(PATH);
  const root = data?.value.root ?? null;
  return (
    <>
      <PageHead
        title="Local CA"
        text="Signs certificates for private names. A device that trusts its root opens all of them without a warning."
        actions={data !== undefined && <RotateButton isFirst={root === null} />}
      />
      {data === undefined && !isPending && <ErrorPanel error={error} onRetry={() => refetch()} />}
      {data !== undefined && root === null && (
        <Section title="Root">
          <Text size="sm">
            There is no root yet. The gateway creates it with the first certificate for a private
            name, such as that of an application under nas.home.arpa.
          </Text>
        </Section>
      )}
      {root !== null && <RootSection root={root} />}
      {root !== null && <PlatformSection root={root} />}
    </>
  );
}

function RootSection({ root }: { readonly root: Root }) {
  const { subject, fingerprint, not_after: end, constraints } = root;
  return (
    <Section title="Root" text="The public certificate. Its key never leaves the gateway.">
      <Group align="flex-start" justify="space-between">
        <Stack gap="md" style={{ flex: "1 1 18rem", minWidth: 0 }}>
          <Stack gap={6}>
            <Fact label="Subject">{subject}</Fact>
            <Fact label="SHA-256">
              <span className="mono">{fingerprint}</span>
            </Fact>
            <Fact label="Valid until">
              {new Date(end).toLocaleDateString()}, <RelativeTime at={end} />
            </Fact>
            <Fact label="Signs only">
              {constraints === null
                ? "Any name, as far as clients check; the gateway signs those of its settings"
                : [...constraints.names, ...constraints.networks].join(", ")}
            </Fact>
          </Stack>
          <Group gap="xs">
            <DownloadButton file="root.crt" label="Certificate (DER)" />
            <DownloadButton file="root.pem" label="Certificate (PEM)" />
          </Group>
        </Stack>
        <PhoneCode />
      </Group>
    </Section>
  );
}

function DownloadButton({ file, label }: { readonly file: string; readonly label: string }) {
  return (
    <Button
      component="a"
      href={`/api/v1/${PATH}/${file}`}
      download
      variant="default"
      leftSection={<IconDownload size={16} />}
    >
      {label}
    </Button>
  );
}

/** Phones reach no address of this machine alone. */
function PhoneCode() {
  const { origin, hostname } = window.location;
  if (/^(?:localhost|127\..*|\[::1\])$/.test(hostname))
    return (
      <Text size="sm" c="dimmed" maw={208}>
        Open this page under an address that phones reach to see a QR code for them.
      </Text>
    );
  return (
    <Stack gap={4} align="center">
      <QrCode text={`${origin}/api/v1/${PATH}/root.crt`} label="QR code of the download" />
      <Text size="xs" c="dimmed">
        For phones and tablets
      </Text>
    </Stack>
  );
}

function PlatformSection({ root }: { readonly root: Root }) {
  const { origin } = window.location;
  return (
    <Section title="Trust" text="Once on each device. Compare the SHA-256 where it is shown.">
      <Stack gap="md">
        {platforms({ origin, fingerprint: root.fingerprint }).map(({ name, steps, command }) => (
          <Stack key={name} gap={4}>
            <Text fw={600} size="sm">
              {name}
            </Text>
            {steps.length > 0 && (
              <List size="sm" type="ordered" withPadding>
                {steps.map((step) => (
                  <List.Item key={step}>{step}</List.Item>
                ))}
              </List>
            )}
            {command !== null && <Code block>{command}</Code>}
          </Stack>
        ))}
      </Stack>
    </Section>
  );
}

function RotateButton({ isFirst }: { readonly isFirst: boolean }) {
  const connection = useConnection();
  const { mutate, isPending } = useChange<Schemas["LocalCa"]>({
    send: () => connection.send(`/${PATH}/rotate`, { method: "POST" }),
    touches: [PATH, "certificates"],
    done: () => (isFirst ? "Root created" : "Root replaced"),
  });
  const ask = () =>
    modals.openConfirmModal({
      title: "Replace the root?",
      children: (
        <Text size="sm">
          The gateway renews all certificates of the local CA. Every device shows warnings until it
          trusts the new root.
        </Text>
      ),
      labels: { confirm: "Replace", cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm: () => mutate(),
    });
  return (
    <Can needs="admin" worksReadOnly>
      <Button variant="default" loading={isPending} onClick={() => (isFirst ? mutate() : ask())}>
        {isFirst ? "Create the root" : "Replace the root"}
      </Button>
    </Can>
  );
}
