{{- define "warmpath.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels of an object; takes a list of the root and the component. */}}
{{- define "warmpath.labels" -}}
{{- $root := index . 0 -}}
{{ include "warmpath.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{- define "warmpath.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: warmpath
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "warmpath.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "warmpath.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What our own containers may do: nothing that serving needs is missing. */}}
{{- define "warmpath.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "warmpath.place" -}}
{{- with .selector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "warmpath.natsUrl" -}}
{{- if .Values.nats.url }}{{ .Values.nats.url }}{{ else if .Values.nats.enabled }}nats://{{ include "warmpath.name" . }}-nats:4222{{ end }}
{{- end }}

{{- define "warmpath.scheme" -}}
{{ ternary "https" "http" (ne .Values.gateway.tls.secret "") }}
{{- end }}

{{/* Secrets that the gateway reads, by what they are for. */}}
{{- define "warmpath.gatewaySecrets" -}}
{{- $gateway := .Values.gateway -}}
{{- range $name, $source := dict "admin-token" $gateway.adminToken "api-keys" $gateway.apiKeys "upstream-key" $gateway.upstreamKey "tls" $gateway.tls }}
{{- with $source.secret }}
{{ $name }}: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "warmpath.gatewayUrl" -}}
{{ include "warmpath.scheme" . }}://{{ include "warmpath.name" . }}:{{ .Values.gateway.port }}
{{- end }}

{{/* The value of --discover. */}}
{{- define "warmpath.discover" -}}
{{- $discovery := .Values.discovery -}}
{{- $parts := list -}}
{{- if $discovery.service -}}
{{- $parts = append $parts (printf "service=%s" $discovery.service) -}}
{{- else if $discovery.labels -}}
{{- range $key, $value := $discovery.labels }}{{ $parts = append $parts (printf "label=%s=%s" $key $value) }}{{ end -}}
{{- else if .Values.workers.enabled -}}
{{- $parts = append $parts (printf "service=%s-workers" (include "warmpath.name" .)) -}}
{{- else -}}
{{- fail "nobody to route to: set discovery.service or discovery.labels, or workers.enabled" -}}
{{- end -}}
{{- with $discovery.namespace }}{{ $parts = append $parts (printf "namespace=%s" .) }}{{ end -}}
{{- $parts = append $parts (printf "port=%v" $discovery.port) -}}
{{- if has $discovery.events.kind (list "http" "trtllm") -}}
{{- $parts = append $parts (printf "events=%s" $discovery.events.kind) -}}
{{- else if eq $discovery.events.kind "zmq" -}}
{{- $parts = append $parts (printf "events=%v" $discovery.events.port) -}}
{{- with $discovery.events.replayPort }}{{ $parts = append $parts (printf "replay=%v" .) }}{{ end -}}
{{- with $discovery.events.topic }}{{ $parts = append $parts (printf "topic=%s" .) }}{{ end -}}
{{- end -}}
{{- range $key, $flag := dict "dpRanks" "dp-ranks" "kvBlocks" "kv-blocks" "batchSlots" "batch-slots" "stepTokens" "step-tokens" "blockTokens" "block-tokens" -}}
{{- with index $discovery $key }}{{ $parts = append $parts (printf "%s=%v" $flag .) }}{{ end -}}
{{- end -}}
kubernetes:{{ join "," $parts }}
{{- end }}
