// Certificates: the list with the validity of each, and which form to open.
import { Anchor, Menu, Stack, Text } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { Link } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { resourcePage } from "../../parts/form-page.tsx";
import { Can } from "../../parts/page-layout.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { relativeTime, StatusDot, toneOf } from "../../parts/status.tsx";
import { CertificateForm } from "./certificate-form.tsx";
import { isRenewed } from "./certificate-values.ts";
import { lifeOf, ValidityBar } from "./validity.tsx";

type Certificate = Read<"certificates">;

export default resourcePage("certificates", CertificateList, CertificateForm);

const hasStatus =
  (...wanted: readonly string[]) =>
  ({ status }: Certificate) =>
    wanted.includes(status);

const expiresSoon = (certificate: Certificate): boolean => {
  const life = lifeOf(certificate);
  return life !== null && life.daysLeft < 30;
};

const kinds = {
  acme: "ACME",
  upload: "uploaded",
  self_signed: "self-signed",
  local_ca: "local CA",
} as const;

function CertificateList() {
  return (
    <ResourceTable
      resource="certificates"
      page="certificates"
      title="Certificates"
      text={
        <>
          TLS certificates for the names that the gateway serves over HTTPS. Devices trust those for
          private names with the root of the{" "}
          <Anchor component={Link} href={pagePath("local-ca")} underline="always">
            local CA
          </Anchor>
          .
        </>
      }
      subtitle={({ domains, on_demand: onDemand }) =>
        onDemand === null ? domains.join(", ") : `on demand: ${onDemand.hosts.join(", ")}`
      }
      columns={[
        {
          title: "State",
          sortBy: ({ status }) => status,
          render: (certificate) => <State certificate={certificate} />,
        },
        {
          title: "Source",
          sortBy: ({ source }) => kinds[source],
          render: ({ source }) => kinds[source],
          width: "6.5rem",
        },
        {
          title: "Validity",
          sortBy: ({ not_after: end }) => end,
          render: (certificate) =>
            certificate.on_demand === null && <ValidityBar certificate={certificate} />,
          width: "10rem",
        },
      ]}
      states={[
        { value: "valid", label: "Valid", fits: hasStatus("valid", "renewing") },
        { value: "waiting", label: "Pending", fits: hasStatus("pending", "ordering") },
        { value: "failed", label: "Failed or expired", fits: hasStatus("failed", "expired") },
        { value: "soon", label: "Expires within 30 days", fits: expiresSoon },
      ]}
      menu={(certificate) => <RenewItem certificate={certificate} />}
      empty={{
        title: "No certificates yet",
        text: "Applications request their own. Create one here to upload a certificate, or to request one for a route.",
      }}
    />
  );
}

function State({ certificate }: { readonly certificate: Certificate }) {
  const { status, last_error: error, next_attempt_at: next, on_demand: onDemand } = certificate;
  if (onDemand !== null) return <StatusDot state="template" />;
  if (!certificate.enabled) return <StatusDot state="off" />;
  return (
    <Stack gap={0}>
      <StatusDot
        state={status}
        tone={error !== null && status === "renewing" ? "bad" : toneOf(status)}
      />
      {error !== null && (
        <Text size="xs" c="dimmed" lineClamp={2} title={error}>
          {error}
        </Text>
      )}
      {error !== null && next !== null && (
        <Text size="xs" c="dimmed">
          next attempt {relativeTime(next)}
        </Text>
      )}
    </Stack>
  );
}

function RenewItem({ certificate }: { readonly certificate: Certificate }) {
  const { id, name, source, enabled, on_demand: onDemand } = certificate;
  const connection = useConnection();
  const { mutate } = useChange<Certificate>({
    send: () => connection.send(`/certificates/${id}/renew`, { method: "POST" }),
    touches: ["certificates"],
    done: () => `Certificate ${name} requested`,
  });
  if (!isRenewed(source) || !enabled || onDemand !== null) return null;
  return (
    <Can needs="editor">
      <Menu.Item leftSection={<IconRefresh size={16} />} onClick={() => mutate()}>
        Renew now
      </Menu.Item>
    </Can>
  );
}
