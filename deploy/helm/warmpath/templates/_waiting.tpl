{{/* Waits until an address answers: TCP for NATS, /health for the gateway. Uses our own image, which has Node. */}}
{{- define "warmpath.waiting" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  image: {{ include "warmpath.image" $root }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  command: [node, -e]
  args:
    - {{ index . 2 | quote }}
  resources:
    requests: { cpu: 10m, memory: 64Mi }
  securityContext:
    {{- include "warmpath.containerSecurity" $root | nindent 4 }}
{{- end }}

{{- define "warmpath.waitForNats" -}}
{{- $url := include "warmpath.natsUrl" . -}}
{{- include "warmpath.waiting" (list . "wait-for-nats" (printf "const { hostname, port } = new URL('%s'); const attempt = () => { const socket = require('net').connect(Number(port || 4222), hostname); socket.on('connect', () => process.exit(0)); socket.on('error', () => setTimeout(attempt, 1000)); }; attempt();" $url)) }}
{{- end }}

{{- define "warmpath.waitForGateway" -}}
{{- $scheme := include "warmpath.scheme" . -}}
{{- $url := printf "%s://%s-gateways:%v/health" $scheme (include "warmpath.name" .) .Values.gateway.port -}}
{{- /* Whether it lives is all that is asked, so whose certificate it shows does not matter. */ -}}
{{- include "warmpath.waiting" (list . "wait-for-gateway" (printf "const again = () => setTimeout(attempt, 1000); const attempt = () => require('%s').get('%s', { rejectUnauthorized: false }, ({ statusCode }) => statusCode === 200 ? process.exit(0) : again()).on('error', again); attempt();" $scheme $url)) }}
{{- end }}
