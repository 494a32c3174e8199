CREATE TABLE "sluice"."rollup" (
	"node" text NOT NULL,
	"span" integer NOT NULL,
	"at" bigint NOT NULL,
	"kind" text NOT NULL,
	"document" "bytea" NOT NULL,
	"mac" "bytea" NOT NULL,
	CONSTRAINT "rollup_span_kind_at_node_pk" PRIMARY KEY("span","kind","at","node")
);
