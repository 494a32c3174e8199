// Fields of an uploaded certificate: two PEM texts, checked while they are pasted; stores no key.
import { FileButton, Group, Button, Stack, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useRef } from "react";
import { dryRun } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError, toMessage } from "../../api/error.ts";
import { useMayChange } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { ListField } from "../../parts/fields.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { relativeTime } from "../../parts/status.tsx";
import { CheckLine, Checking } from "../applications/live-checks.tsx";
import type { CertificateFieldsProps } from "./certificate-form.tsx";
import { type CertificateValues, followedName, rules } from "./certificate-values.ts";

interface Props extends CertificateFieldsProps {
  /** Null for one that is new. */
  readonly id: string | null;
}

export function UploadFields({ form, id }: Props) {
  const found = useDryRun(form.values, id);
  const { error, data } = found;
  useEffect(() => {
    if (id === null && data !== undefined && form.values.name === "")
      form.setFieldValue("name", followedName(form.values, data.domains));
  }, [id, data, form]);
  const problemOf = (field: string) =>
    error instanceof ApiError && error.field === field ? error.detail : null;
  const isElsewhere =
    error !== null && problemOf("certificate") === null && problemOf("private_key") === null;
  return (
    <Section title="Certificate and key" text="As issued by the CA, in PEM format.">
      <Stack>
        <PemField
          label="Certificate"
          description="The certificate and its intermediates, in any order"
          begin="-----BEGIN CERTIFICATE-----"
          value={form.values.certificate}
          onChange={(text) => form.setFieldValue("certificate", text)}
          error={form.errors["certificate"] ?? problemOf("certificate")}
        />
        <PemField
          label="Private key"
          description={
            id === null
              ? "Stored encrypted and never shown again"
              : "Stored encrypted and never shown. Empty: unchanged"
          }
          begin="-----BEGIN PRIVATE KEY-----"
          value={form.values.private_key}
          onChange={(text) => form.setFieldValue("private_key", text)}
          error={form.errors["private_key"] ?? problemOf("private_key")}
        />
        {found.isFetching && <Checking text="Checking…" />}
        {found.data !== undefined && error === null && !found.isFetching && (
          <CertificateSummary certificate={found.data} />
        )}
        {isElsewhere && <CheckLine status="failed">{toMessage(error)}</CheckLine>}
        {id !== null && (
          <ListField
            label="Domains"
            description="Names that it is served for. Empty: all names in the certificate"
            {...form.getInputProps("domains")}
          />
        )}
      </Stack>
    </Section>
  );
}

function CertificateSummary({ certificate }: { readonly certificate: Read<"certificates"> }) {
  const { domains, not_after: end, issuer, status } = certificate;
  return (
    <CheckLine status={status === "valid" ? "ok" : "warning"}>
      For <b>{domains.join(", ")}</b>, issued by {issuer}.{" "}
      {end !== null && `${status === "expired" ? "Expired" : "Expires"} ${relativeTime(end)}.`}
    </CheckLine>
  );
}

/** The gateway's check of the certificate, as a dry run. */
function useDryRun(values: CertificateValues, id: string | null) {
  const connection = useConnection();
  const [pasted] = useDebouncedValue(`${values.certificate}\u0000${values.private_key}`, 500);
  const [certificate = "", key = ""] = pasted.split("\u0000");
  const seen = useRef({ pasted, count: 0 });
  if (seen.current.pasted !== pasted) seen.current = { pasted, count: seen.current.count + 1 };
  const isWhole =
    rules.certificate(certificate, values) === null &&
    rules.private_key(key, values) === null &&
    (id !== null || key !== "");
  const canAsk = useMayChange("editor");
  return useQuery({
    // The private key must not become part of a cache key.
    queryKey: ["certificates/reading", id, seen.current.count],
    enabled: isWhole && canAsk && certificate !== "",
    retry: false,
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const given = { certificate, ...(key === "" ? {} : { private_key: key }) };
      // A unique name: this check must not report that the form's name exists.
      const whole =
        id === null
          ? { ...given, name: `reading ${crypto.randomUUID()}`, source: "upload" }
          : { ...given, domains: [] };
      const { value } = await connection.send<Read<"certificates">>(
        id === null ? "/certificates" : `/certificates/${id}`,
        { method: id === null ? "POST" : "PATCH", body: whole, signal, ...dryRun },
      );
      return value;
    },
  });
}

interface PemFieldProps {
  readonly label: string;
  readonly description: string;
  readonly begin: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly error: React.ReactNode;
}

/** A text area with a button to load a file. */
function PemField({ label, description, begin, value, onChange, error }: PemFieldProps) {
  const id = useId();
  return (
    <Stack gap={6}>
      <Textarea
        id={id}
        label={label}
        description={description}
        placeholder={begin}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        autoComplete="off"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        error={error}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
      />
      <Can needs="editor">
        <Group>
          <FileButton
            accept=".pem,.crt,.cer,.key,.txt,application/x-pem-file"
            onChange={(file) => void file?.text().then(onChange)}
            inputProps={{ "aria-label": `${label} from a file` }}
          >
            {(props) => (
              <Button size="xs" variant="default" {...props}>
                From a file
              </Button>
            )}
          </FileButton>
        </Group>
      </Can>
    </Stack>
  );
}
