// The status of a certificate: validity, last error and advice, next attempt; renews and revokes.
import { Alert, Button, Stack, Text } from "@mantine/core";
import { IconDownload, IconRefresh } from "@tabler/icons-react";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Read } from "../../api/resources.ts";
import { Can, Fact, Section } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusBadge } from "../../parts/status.tsx";
import { adviceFor } from "./certificate-advice.ts";
import { isRenewed } from "./certificate-values.ts";
import { RevokeDialog } from "./revoke-dialog.tsx";
import { ValidityTimeline } from "./validity.tsx";

interface Props {
  readonly certificate: Read<"certificates">;
}

const sources: Readonly<Record<Read<"certificates">["source"], string>> = {
  acme: "Issued by a CA",
  upload: "Uploaded",
  self_signed: "Self-signed",
  local_ca: "Signed by the local CA",
};

const stateOf = ({ status, enabled, on_demand: onDemand }: Props["certificate"]): string =>
  onDemand !== null ? "template" : enabled ? status : "off";

export function CertificateStatus({ certificate }: Props) {
  const { source, issuer, fingerprint, attempts } = certificate;
  const { not_after: end } = certificate;
  return (
    <Section title="State" actions={<StatusBadge state={stateOf(certificate)} />}>
      <Stack gap="md">
        <LastError certificate={certificate} />
        <ValidityTimeline certificate={certificate} />
        <Stack gap={6}>
          <Fact label="Source">{sources[source]}</Fact>
          {issuer !== null && <Fact label="Issuer">{issuer}</Fact>}
          <Fact label="Valid until">
            {end !== null && `${new Date(end).toLocaleDateString()}, `}
            <RelativeTime at={end} never="not issued yet" />
          </Fact>
          <NextAttempt certificate={certificate} />
          {attempts > 0 && <Fact label="Failed attempts">{attempts}</Fact>}
          {fingerprint !== null && (
            <Fact label="SHA-256">
              <span className="mono">{fingerprint}</span>
            </Fact>
          )}
        </Stack>
      </Stack>
    </Section>
  );
}

function NextAttempt({ certificate }: Props) {
  const { source, next_attempt_at: next, status, renewal_window: window, enabled } = certificate;
  if (source === "upload")
    return <Fact label="Renewal">Upload a new one before this one expires</Fact>;
  if (source === "self_signed") return <Fact label="Renewal">Automatic, before it expires</Fact>;
  if (!enabled) return <Fact label="Next attempt">None: the certificate is disabled</Fact>;
  const isOrdered = status === "pending" || status === "ordering" || status === "failed";
  return (
    <Fact label={isOrdered ? "Next attempt" : "Renewal"}>
      <RelativeTime at={next} never={isOrdered ? "in progress" : "automatic"} />
      {window !== null && " (suggested by the CA)"}
    </Fact>
  );
}

function LastError({ certificate }: Props) {
  const { last_error: error, status } = certificate;
  if (error === null) return null;
  const advice = adviceFor(error);
  const isServed = status === "valid" || status === "renewing";
  return (
    <Alert
      color={isServed ? "yellow" : "red"}
      title={
        isServed ? "Renewal failed; the current certificate is still valid" : "Issuance failed"
      }
    >
      <Stack gap={6}>
        {advice !== null && <Text size="sm">{advice}</Text>}
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {error}
        </Text>
      </Stack>
    </Alert>
  );
}

/** Renew, revoke and download, as the source allows. */
export function CertificateActions({ certificate }: Props) {
  const { id, name, source, status, on_demand: onDemand, enabled } = certificate;
  const connection = useConnection();
  const [isRevoking, setRevoking] = useState(false);
  const { mutate, isPending } = useChange<Read<"certificates">>({
    send: () => connection.send(`/certificates/${id}/renew`, { method: "POST" }),
    touches: ["certificates"],
    done: () => `Certificate ${name} requested`,
  });
  const isOrdered = source === "acme" && onDemand === null;
  const canRenew = isRenewed(source) && onDemand === null;
  const isIssued = certificate.fingerprint !== null;
  return (
    <>
      {isIssued && (
        <Button
          component="a"
          href={`/api/v1/certificates/${id}/pem`}
          download={`${name}.pem`}
          variant="default"
          leftSection={<IconDownload size={16} />}
        >
          PEM
        </Button>
      )}
      <Can needs="editor">
        {canRenew && enabled && (
          <Button
            variant="light"
            loading={isPending || status === "ordering"}
            leftSection={<IconRefresh size={16} />}
            onClick={() => mutate()}
          >
            {isIssued ? "Renew now" : "Retry now"}
          </Button>
        )}
        {isOrdered && isIssued && (
          <Button variant="light" color="red" onClick={() => setRevoking(true)}>
            Revoke
          </Button>
        )}
      </Can>
      <RevokeDialog
        certificate={isRevoking ? certificate : null}
        onClose={() => setRevoking(false)}
      />
    </>
  );
}
